"""Reports of running attempts: a reading, a file, the end of the trial.

Every function works inside a transaction of the caller, who holds the study's lock.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Insert, Table, bindparam, delete, insert, select, update

from studies.ledger import reads
from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.files import found_file, written_file
from studies.ledger.rows import clean, reading_to_row
from studies.ledger.tables import ARTEFACTS, ATTEMPTS, EXAMPLES, READINGS, TRIALS
from studies.records import ArtefactRecord, Reading, TrialReport, TrialState

KEPT_SNAPSHOTS = 2

_RUNNING = (TRIALS.c.state == TrialState.RUNNING.value, TRIALS.c.attempt == bindparam("of_attempt"))
_FIND = select(TRIALS.c.id, TRIALS.c.steps).where(
    TRIALS.c.study_id == bindparam("of_study"), TRIALS.c.number == bindparam("of_number"), *_RUNNING
)
_PROGRESS = (
    update(TRIALS)
    .where(TRIALS.c.id == bindparam("of_id"), *_RUNNING)
    .values(steps=bindparam("new_steps"), last_score=bindparam("new_last_score"))
)
_END_TRIAL = (
    update(TRIALS)
    .where(TRIALS.c.id == bindparam("of_id"), *_RUNNING)
    .values(
        state=bindparam("new_state"),
        score=bindparam("new_score"),
        reason=bindparam("new_reason"),
        ended_at=bindparam("now"),
    )
)
_END_ATTEMPT = (
    update(ATTEMPTS)
    .where(ATTEMPTS.c.trial_id == bindparam("of_id"), ATTEMPTS.c.attempt == bindparam("of_attempt"))
    .values(ending=bindparam("new_state"), ended_at=bindparam("now"))
)
_FILES = select(ARTEFACTS).where(ARTEFACTS.c.trial_id == bindparam("of_id")).order_by(ARTEFACTS.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Recorded report.

    Attributes:
        unlinked: Paths of files without a row, which the caller deletes after the commit.
        ended_at: Time of the end in UTC if the report ends its trial.
    """

    unlinked: tuple[str, ...]
    ended_at: datetime | None = None


def settle_all(
    connection: Connection, study_id: int, in_doubt: list[Settled | None] | None, given: Sequence[TrialReport]
) -> list[Settled | None]:
    """Record the reports of several attempts atomically; see `studies.ledger.ledger.Ledger.settle`."""
    told = zip(given, in_doubt or [None] * len(given), strict=True)
    return [_settle(connection, study_id, report, earlier) for report, earlier in told]


def _settle(connection: Connection, study_id: int, report: TrialReport, in_doubt: Settled | None) -> Settled | None:
    """Record a report if its attempt is running; else return None.

    A second reading of a step is ignored. The newest two snapshots of a trial are kept, and none of an ended trial.
    """
    attempt = {"of_attempt": report.attempt}
    key = {"of_study": study_id, "of_number": report.trial}
    trial = connection.execute(_FIND, key | attempt).one_or_none()
    if trial is None:
        # Nobody else writes under the keeper's epoch: if the run in doubt found the attempt running, it also ended it.
        return in_doubt if report.state.is_terminal else None
    of_trial = {"of_id": trial.id} | attempt
    if report.reading is not None:
        _add_reading(connection, report.reading, int(trial.steps), of_trial)
    dropped: list[str] = []
    if report.artefact is not None or report.state.is_terminal:
        dropped = _turn_over_files(connection, trial.id, report, reads.folder(connection, study_id))
    ended_at = _end(connection, report, of_trial) if report.state.is_terminal else None
    earlier = () if in_doubt is None else in_doubt.unlinked
    return Settled(unlinked=tuple(sorted({*dropped, *earlier})), ended_at=ended_at)


@cache
def _insert_new(dialect: str, table: Table) -> Insert:
    """Insert rows whose keys are new; a dialect is imported when needed."""
    statement: Insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table).on_conflict_do_nothing()
    return statement


def _add_reading(connection: Connection, reading: Reading, steps: int, of_trial: dict[str, Any]) -> None:
    """Insert a new reading with its examples, and update the trial's progress."""
    dialect, key = connection.dialect.name, of_trial["of_id"]
    row = reading_to_row(reading, key) | {"heard_at": WRITTEN_TIME.now()}
    connection.execute(_insert_new(dialect, READINGS), row)
    if (one := reading.examples) is not None:
        row = {"trial_id": key, "step": reading.step, "losses": one.losses, "correct": one.correct}
        connection.execute(_insert_new(dialect, EXAMPLES), row)
    if reading.step > steps:
        connection.execute(_PROGRESS, of_trial | {"new_steps": reading.step, "new_last_score": float(reading.score)})


def _turn_over_files(connection: Connection, trial_id: int, report: TrialReport, folder: Path | None) -> list[str]:
    """Add the report's file, drop obsolete ones, and return the paths that no row names any more."""
    rows = list(connection.execute(_FILES, {"of_id": trial_id}))
    stale = []
    if report.artefact is not None:
        same = (report.artefact.kind, report.artefact.step)
        stale = [row for row in rows if (row.kind, row.step) == same]
        rows = [row for row in rows if (row.kind, row.step) != same]
    snapshots = [row for row in rows if row.kind == "snapshot"]
    keep, incoming = 0, _incoming(report, folder)
    if not report.state.is_terminal:
        keep = KEPT_SNAPSHOTS - (incoming is not None and incoming.kind == "snapshot")
    stale += snapshots[: max(0, len(snapshots) - keep)]
    if stale:
        connection.execute(delete(ARTEFACTS).where(ARTEFACTS.c.id.in_([row.id for row in stale])))
    dropped = [row.path for row in stale]
    if incoming is not None:
        values = asdict(incoming) | {"trial_id": trial_id}
        connection.execute(insert(ARTEFACTS), {name: value for name, value in values.items() if name != "trial"})
    elif report.artefact is not None:
        dropped.append(written_file(report.artefact.path, folder))
    kept = {row.path for row in rows if row not in stale} | ({incoming.path} if incoming is not None else set())
    return sorted(found_file(path, folder) for path in set(dropped) - kept)


def _incoming(report: TrialReport, folder: Path | None) -> ArtefactRecord | None:
    """Return the report's file for the ledger; None for the snapshot of a trial that ends, which is not needed."""
    artefact = report.artefact
    if artefact is None or (artefact.kind == "snapshot" and report.state.is_terminal):
        return None
    return replace(artefact, path=written_file(artefact.path, folder))


def _end(connection: Connection, report: TrialReport, of_trial: dict[str, Any]) -> datetime:
    """End the trial and its attempt at the same time, and return it."""
    ended_at = WRITTEN_TIME.now()
    values = {
        "new_state": report.state.value,
        "new_score": None if report.score is None else float(report.score),
        "new_reason": None if report.reason is None else clean(report.reason),
        "now": ended_at,
    }
    connection.execute(_END_TRIAL, of_trial | values)
    connection.execute(_END_ATTEMPT, of_trial | {"new_state": values["new_state"], "now": values["now"]})
    return ended_at
