"""How a launch that has joined another speaks to its keeper: a row that each of the two writes half of.

Whoever joined asks under a number that counts up; the keeper answers under the same number, and only while it is the
study's keeper. So a call that no keeper has answered is there for the next one, and an answer is there until it is
read. What is said is text; `studies.keeping.calls` knows what it means. Every function works inside a transaction of
the caller.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from studies.store.clock import WRITTEN_TIME
from studies.store.rows import clean
from studies.store.tables import CALLS

_OWN = (CALLS.c.study_id == bindparam("of_study"), CALLS.c.caller == bindparam("of_caller"))
_NUMBER = select(CALLS.c.number).where(*_OWN)
_ASK_AGAIN = update(CALLS).where(*_OWN).values(number=bindparam("n"), call=bindparam("text"), asked_at=bindparam("now"))
_ANSWER = select(CALLS.c.answer).where(*_OWN, CALLS.c.answered == bindparam("n"))
_WAITING = (
    select(CALLS.c.caller, CALLS.c.number, CALLS.c.call)
    .where(CALLS.c.study_id == bindparam("of_study"), CALLS.c.answered < CALLS.c.number)
    .order_by(CALLS.c.asked_at)
)
_REPLY = (
    update(CALLS)
    .where(*_OWN, CALLS.c.number == bindparam("n"))
    .values(answered=CALLS.c.number, answer=bindparam("text"))
)
_END = delete(CALLS).where(*_OWN)
_FORGET = delete(CALLS).where(CALLS.c.study_id == bindparam("of_study"), CALLS.c.asked_at < bindparam("before"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A call that waits for its answer.

    Attributes:
        caller: Name of the launch that asks.
        number: Of the call.
        text: What it asks.
    """

    caller: str
    number: int
    text: str


def ask(connection: Connection, study_id: int, caller: str, text: str, in_doubt: int | None) -> int:
    """Ask the keeper of a study, in place of what was asked before; the number of the call.

    Args:
        in_doubt: The number of a try that may have been written.
    """
    own = {"of_study": study_id, "of_caller": caller}
    before = connection.execute(_NUMBER, own).scalar_one_or_none()
    if before is not None and before == in_doubt:
        return int(before)
    now = WRITTEN_TIME.now()
    if before is not None:
        connection.execute(_ASK_AGAIN, {**own, "n": before + 1, "text": clean(text), "now": now})
        return int(before) + 1
    row = {"study_id": study_id, "caller": caller, "number": 1, "call": clean(text), "asked_at": now, "answered": 0}
    connection.execute(insert(CALLS), row)
    return 1


def answer(connection: Connection, study_id: int, caller: str, number: int) -> str | None:
    """The answer to a call; None while there is none."""
    own = {"of_study": study_id, "of_caller": caller, "n": number}
    found: str | None = connection.execute(_ANSWER, own).scalar_one_or_none()
    return found


def waiting(connection: Connection, study_id: int) -> list[WaitingCall]:
    """The calls of a study that have no answer, the oldest first."""
    rows = connection.execute(_WAITING, {"of_study": study_id})
    return [WaitingCall(caller=row.caller, number=row.number, text=row.call) for row in rows]


def reply(connection: Connection, study_id: int, call: WaitingCall, text: str) -> None:
    """Answer a call, if it is still the newest of its caller."""
    own = {"of_study": study_id, "of_caller": call.caller, "n": call.number}
    connection.execute(_REPLY, {**own, "text": clean(text)})


def hang_up(connection: Connection, study_id: int, caller: str) -> None:
    """Forget a launch that asks nothing more."""
    connection.execute(_END, {"of_study": study_id, "of_caller": caller})


def forget(connection: Connection, study_id: int, before: datetime) -> None:
    """Forget launches that have asked nothing since."""
    connection.execute(_FORGET, {"of_study": study_id, "before": before})
