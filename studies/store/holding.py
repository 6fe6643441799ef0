"""Who runs a study, and who has joined: every function works inside a transaction of the caller.

One launch runs a study, until a time that it moves on while it lives. The fence of a keeper
(`studies.store.keeping.take_over`) keeps two launches from harming each other; this keeps a second one from ending the
first by mistake.

A launch that has joined another speaks to its keeper by a row that each of the two writes half of. It asks under a
number that counts up; the keeper answers under the same number, and only while it is the study's keeper. So a call that
no keeper has answered is there for the next one, and an answer is there until it is read. What is said is text;
`studies.keeping.calls` knows what it means.
"""

import os
import socket
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from studies.errors import StudyHeldError
from studies.store.clock import WRITTEN_TIME
from studies.store.rows import clean
from studies.store.tables import CALLS, STUDIES

_HOLD = select(STUDIES.c.holder, STUDIES.c.held_until).where(STUDIES.c.id == bindparam("of_study"))
_LOCK = select(STUDIES.c.id).where(STUDIES.c.id == bindparam("of_study")).with_for_update()
_SET = (
    update(STUDIES)
    .where(STUDIES.c.id == bindparam("of_study"))
    .values(holder=bindparam("new_holder"), held_until=bindparam("until"))
)
_RENEW = (
    update(STUDIES)
    .where(STUDIES.c.id == bindparam("of_study"), STUDIES.c.holder == bindparam("of_holder"))
    .values(held_until=bindparam("until"))
)
_LET_GO = (
    update(STUDIES)
    .where(STUDIES.c.id == bindparam("of_study"), STUDIES.c.holder == bindparam("of_holder"))
    .values(holder=None, held_until=None)
)
_BEGAN_FIELD = 19  # of /proc/PID/stat, counted from its state


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchName:
    """A launch, so that any process can tell whether it still runs; its text is what the ledger has.

    Attributes:
        host: Name of its machine.
        process: Number of its process.
        place: Tells apart what counts processes: machines since their start, containers.
        began: When the process began, as its machine counts; empty where that is not told.
        mark: Tells launches of one process apart.
    """

    host: str
    process: int
    place: str
    began: str
    mark: str

    @classmethod
    def of_this_process(cls) -> Self:
        """A new launch of this process."""
        process = os.getpid()
        return cls(
            host=socket.gethostname(),
            process=process,
            place=_place(),
            began=(_begun(process) or ""),
            mark=uuid.uuid4().hex[:8],
        )

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The launch that a text of the ledger names; None if it is no such text."""
        host, *parts = text.rsplit(":", 4)
        if len(parts) != 4 or not parts[0].isdecimal():
            return None
        return cls(host=host, process=int(parts[0]), place=parts[1], began=parts[2], mark=parts[3])

    def __str__(self) -> str:
        """As the ledger has it."""
        return f"{self.host}:{self.process}:{self.place}:{self.began}:{self.mark}"

    @property
    def is_dead(self) -> bool:
        """Whether its process has certainly ended; of another machine's nobody here can tell."""
        if self.place != _place():
            return False
        began = _begun(self.process)
        # where a process of another user is hidden, nobody is told when it began
        return began is None or ("" not in (began, self.began) and began != self.began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A launch that runs a study.

    Attributes:
        holder: As the ledger has it; see `LaunchName`.
        until: UTC; unless it goes on, nobody runs the study then.
    """

    holder: str
    until: datetime

    @property
    def is_live(self) -> bool:
        """Whether the launch runs, as far as can be told from here."""
        name = LaunchName.parse(self.holder)
        return self.until > WRITTEN_TIME.now() and not (name is not None and name.is_dead)

    @property
    def words(self) -> str:
        """Who it is, for people."""
        name = LaunchName.parse(self.holder)
        return self.holder if name is None else f"process {name.process} on {name.host}"


def holder(connection: Connection, study_id: int) -> Hold | None:
    """Who holds a study, alive or not."""
    row = connection.execute(_HOLD, {"of_study": study_id}).one_or_none()
    return None if row is None or row.holder is None else Hold(holder=row.holder, until=row.held_until)


def held_error(name: str, hold: Hold) -> StudyHeldError:
    """That a study is run by another launch."""
    return StudyHeldError(
        f"study '{name}' must not be run by another launch; {hold.words} runs it, and was heard of until "
        f"{hold.until:%H:%M:%S} UTC. Wait for it, work for it with --join, or end it with --take-over "
        "(from Python: join=True, take_over=True)."
    )


def lock(connection: Connection, study_id: int) -> None:
    """Let nobody change who runs a study until the transaction ends."""
    connection.execute(_LOCK, {"of_study": study_id})


def hold(
    connection: Connection, study_id: int, launch: str, seconds: float, *, instead_of: str | None = None
) -> Hold | None:
    """Let a launch hold a study for a while; who holds it now if that is refused.

    Args:
        instead_of: The holder that it may take the study from, though that one lives.
    """
    lock(connection, study_id)
    present = holder(connection, study_id)
    if present is not None and present.is_live and present.holder not in (launch, instead_of):
        return present
    connection.execute(_SET, {"of_study": study_id, "new_holder": launch, "until": _in(seconds)})
    return None


def renew_hold(connection: Connection, study_id: int, launch: str, seconds: float) -> None:
    """Move the time on, if it still is the launch's."""
    connection.execute(_RENEW, {"of_study": study_id, "of_holder": launch, "until": _in(seconds)})


def let_go(connection: Connection, study_id: int, launch: str) -> None:
    """End a hold, if it still is the launch's."""
    connection.execute(_LET_GO, {"of_study": study_id, "of_holder": launch})


def _in(seconds: float) -> datetime:
    return WRITTEN_TIME.now() + timedelta(seconds=seconds)


def _place() -> str:
    """What tells this machine since its start, and this container, from every other."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(Path(path).readlink().name if path.endswith("pid") else Path(path).read_text().strip())
        except OSError:
            continue
    return sha256(" ".join(parts).encode()).hexdigest()[:12]


def _begun(process: int) -> str | None:
    """When a process began; empty where that is not told; None if it has ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return None
    except (OSError, OverflowError):
        pass
    try:
        state, *fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return None if state in "ZX" else fields[_BEGAN_FIELD - 1]


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
