"""Answers the launches that have joined."""

import re
import time
from datetime import timedelta

from pydantic import ValidationError

from studies.errors import StorageError, StudiesError
from studies.keeping.calls import (
    Beat,
    Call,
    Crash,
    Exchange,
    Exchanged,
    Join,
    Leave,
    Lent,
    Look,
    Noted,
    Refused,
    Reply,
    Standing,
    call_of,
    reply_text,
)
from studies.keeping.keeper import StudyKeeper
from studies.keeping.messages import crash_reason
from studies.store.holding import WaitingCall
from studies.store.ledger import Ledger

JOINED_MARK = ".joined-"
"""Begins the name of a file by which a launch that joins shows that it has the study's folder."""

_BUSY_SECONDS, _IDLE_SECONDS, _STAYS_BUSY_SECONDS = 0.1, 1.0, 30.0
_FORGOTTEN = timedelta(days=1)


class Answering:
    """Looks for calls in the ledger and has the keeper answer them; see `studies.keeping.beside`.

    It looks without patience of its own: a database that is locked or away is the keeper's to wait for.
    """

    def __init__(self, keeper: StudyKeeper, storage_url: str) -> None:
        """Look at a ledger for a keeper that is safe to be used from several threads."""
        self._keeper = keeper
        self._storage_url = storage_url
        self._ledger: Ledger | None = None
        self._busy_until = 0.0

    def __call__(self) -> float:
        """Answer what was asked since the last time; after how many seconds to look again.

        Raises:
            StudiesError: What the keeper raised.
        """
        if self._ledger is None:
            self._keeper.forget_callers(_FORGOTTEN)
        for one in self._waiting():
            self._keeper.reply(one, self._answered(one))
            self._busy_until = time.monotonic() + _STAYS_BUSY_SECONDS
        return _BUSY_SECONDS if time.monotonic() < self._busy_until else _IDLE_SECONDS

    def _answered(self, waiting: WaitingCall) -> str:
        """What is said to a call; one that meets an error which is nobody's ends its own launch and no other."""
        try:
            call = call_of(waiting.text)
        except ValidationError:
            return reply_text(Refused(reason="what is asked must be in the words of this release; it is not"))
        try:
            return reply_text(answer(self._keeper, call))
        except StudiesError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one call meets, the others are answered
            met = crash_reason(error)
            self._keeper.dismiss(getattr(call, "worker", waiting.caller), f"a call could not be answered: {met}")
            return reply_text(Refused(reason=f"it could not answer, {met.rstrip('.')}"))

    def _waiting(self) -> list[WaitingCall]:
        try:
            if self._ledger is None:
                self._ledger = Ledger.open(self._storage_url, read_only=True)
            return self._ledger.waiting_calls(self._keeper.study.id)
        except StorageError:
            return []

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger is not None:
            self._ledger.close()


def answer(keeper: StudyKeeper, call: Call) -> Reply:
    """What the keeper says to a call."""
    match call:
        case Exchange():
            given = keeper.exchange(call.worker, call.reports, call.free_slots)
            lent = (Lent(trial=one.request.trial, attempt=one.request.attempt) for one in given.leases)
            return Exchanged(verdicts=given.verdicts, lent=tuple(lent), is_over=given.is_over)
        case Beat():
            dismissed = tuple(worker for worker in call.workers if keeper.heartbeat(worker))
            found = keeper.standing(call.expected)
            return Standing(
                dismissed=dismissed,
                silent=found.silent,
                is_done=found.is_done,
                is_leaving=bool(found.drained),
                progress=found.progress,
            )
        case Look():
            path = keeper.folder / f"{JOINED_MARK}{call.mark}"
            is_there = re.fullmatch(r"[0-9a-f]+", call.mark) is not None and path.is_file()
            return Noted() if is_there else Refused(reason=f"it is not there on the machine that keeps {keeper.folder}")
        case Join():
            keeper.join(call.worker, is_own=False)
        case Leave():
            keeper.leave(call.worker, call.reports)
        case Crash():
            keeper.dismiss(call.worker, call.text)
    return Noted()
