"""Leases: given, renewed and taken back.

Every function works inside a transaction of the caller, who holds the study's lock.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, String, bindparam, cast, exists, func, insert, literal, or_, select, update

from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.keeper_writes import LEASE_SECONDS, add_event
from studies.ledger.tables import ATTEMPTS, EVENTS, READINGS, TRIALS
from studies.records import AttemptRecord, EventKind, TrialState

LAID_ASIDE = "laid aside"
"""Reason of an attempt that its worker returned; it does not count as a loss."""

MACHINE_LOST = "its machine was lost"
"""Reason of an attempt lost with its machine; it does not count as a loss either."""

_START = (
    update(TRIALS)
    .where(
        TRIALS.c.study_id == bindparam("of_study"),
        TRIALS.c.number == bindparam("of_number"),
        TRIALS.c.state == TrialState.QUEUED.value,
    )
    .values(state=TrialState.RUNNING.value, attempt=TRIALS.c.attempt + 1)
    .returning(TRIALS.c.id, TRIALS.c.attempt)
)
_OF_STUDY = select(TRIALS.c.id).where(TRIALS.c.study_id == bindparam("of_study"))
_RENEW = (
    update(ATTEMPTS)
    .where(
        ATTEMPTS.c.worker == bindparam("of_worker"), ATTEMPTS.c.ended_at.is_(None), ATTEMPTS.c.trial_id.in_(_OF_STUDY)
    )
    .values(lease_expires_at=bindparam("until"))
)
_OPEN = (
    select(TRIALS.c.id, TRIALS.c.number, TRIALS.c.attempt, ATTEMPTS.c.worker)
    .select_from(
        TRIALS.outerjoin(ATTEMPTS, (ATTEMPTS.c.trial_id == TRIALS.c.id) & (ATTEMPTS.c.attempt == TRIALS.c.attempt))
    )
    .where(TRIALS.c.study_id == bindparam("of_study"), TRIALS.c.state == TrialState.RUNNING.value)
    .order_by(TRIALS.c.number)
)
_ENDED_AS = literal("attempt ") + cast(ATTEMPTS.c.attempt, String) + " on " + ATTEMPTS.c.worker
_IS_BLAMELESS = exists().where(
    EVENTS.c.study_id == TRIALS.c.study_id,
    EVENTS.c.trial == TRIALS.c.number,
    EVENTS.c.kind == EventKind.LOST.value,
    or_(*(EVENTS.c.text == _ENDED_AS + f": {why}" for why in (LAID_ASIDE, MACHINE_LOST))),
)
_LAST_THAT_READ = (
    select(func.coalesce(func.max(READINGS.c.attempt), 0))
    .where(READINGS.c.trial_id == TRIALS.c.id)
    .correlate(TRIALS)
    .scalar_subquery()
)
_LOSSES = (
    select(TRIALS.c.number, func.count())
    .join_from(TRIALS, ATTEMPTS, ATTEMPTS.c.trial_id == TRIALS.c.id)
    .where(
        TRIALS.c.study_id == bindparam("of_study"),
        TRIALS.c.state.in_([TrialState.QUEUED.value, TrialState.RUNNING.value]),
        ATTEMPTS.c.ending == "lost",
        ATTEMPTS.c.attempt >= _LAST_THAT_READ,
        ~_IS_BLAMELESS,
    )
    .group_by(TRIALS.c.number)
)


Leased = list[AttemptRecord | None]
"""New attempt of each requested trial; None if the trial was not queued."""


def lease_all(
    connection: Connection,
    study_id: int,
    in_doubt: Leased | None,
    numbers: Sequence[int],
    worker: str,
    seconds: float = LEASE_SECONDS,
) -> Leased:
    """Lease queued trials to a worker as their next attempts."""
    leased = [_lease(connection, study_id, number, worker, seconds) for number in numbers]
    return [new or earlier for new, earlier in zip(leased, in_doubt or leased, strict=True)]


def _lease(connection: Connection, study_id: int, number: int, worker: str, seconds: float) -> AttemptRecord | None:
    started = connection.execute(_START, {"of_study": study_id, "of_number": number}).one_or_none()
    if started is None:
        return None
    now = WRITTEN_TIME.now()
    until = now + timedelta(seconds=seconds)
    begun: dict[str, Any] = {"worker": worker, "lease_expires_at": until, "started_at": now, "attempt": started.attempt}
    connection.execute(insert(ATTEMPTS), begun | {"trial_id": started.id})
    return AttemptRecord(trial=number, **begun, ended_at=None, ending=None)


def renew(connection: Connection, study_id: int, worker: str, lease_seconds: float = LEASE_SECONDS) -> int:
    """Extend all leases of a worker and return their number."""
    until = WRITTEN_TIME.now() + timedelta(seconds=lease_seconds)
    return connection.execute(_RENEW, {"of_study": study_id, "of_worker": worker, "until": until}).rowcount


def losses(connection: Connection, study_id: int) -> dict[int, int]:
    """Return the number of losses in a row since the newest reading, by open trial; zeros are left out."""
    return {number: count for number, count in connection.execute(_LOSSES, {"of_study": study_id})}


def release(
    connection: Connection, study_id: int, in_doubt: list[int] | None, worker: str | None, why: str
) -> list[int]:
    """Requeue the running trials of a worker, or of all, with lost attempts; return their numbers.

    Trials requeued by a run in doubt are included.
    """
    mine = _OPEN if worker is None else _OPEN.where(ATTEMPTS.c.worker == worker)
    rows = connection.execute(mine, {"of_study": study_id}).all()
    before = in_doubt or []
    if not rows:
        return before
    ids = [row.id for row in rows]
    lost = update(ATTEMPTS).where(ATTEMPTS.c.trial_id.in_(ids), ATTEMPTS.c.ended_at.is_(None))
    connection.execute(lost.values(ending="lost", ended_at=WRITTEN_TIME.now()))
    run = update(TRIALS).where(TRIALS.c.id.in_(ids), TRIALS.c.state == TrialState.RUNNING.value)
    connection.execute(run.values(state=TrialState.QUEUED.value))
    for row in rows:
        add_event(connection, study_id, EventKind.LOST, f"attempt {row.attempt} on {row.worker}: {why}", row.number)
    return sorted({*before, *(row.number for row in rows)})
