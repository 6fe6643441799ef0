"""Takes a running attempt's report: readings, a file, the end of the trial.

Every function works inside a transaction of the caller, who holds the study's lock.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Insert, Table, bindparam, delete, insert, select, update

from studies.errors import StudiesError
from studies.ledger import reads
from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.files import found_file, written_file
from studies.ledger.rows import clean, reading_to_row
from studies.ledger.tables import ARTEFACTS, ATTEMPTS, EXAMPLES, READINGS, TRIALS
from studies.records import ArtefactRecord, ExampleRecord, Reading, TrialState

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


Dropped = tuple[str, ...]
"""Paths of files whose rows are gone for good; the caller deletes them now, after the commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEntry:
    """What the ledger takes in of an attempt at once: what its worker reported, and how the keeper decided.

    Attributes:
        attempt: The attempt that speaks.
        readings: Measurements since its last entry, in any order.
        examples: Of some of the readings, the same example by example.
        artefact: A file that was written and flushed to disk before.
        state: Where the trial stands with it; running while it goes on.
        score: Final score, finite; given exactly when complete.
        reason: Given exactly when pruned or failed.

    Raises:
        StudiesError: If state, score and reason do not fit together.
        ValueError: If a reading or the file belongs to another trial or attempt.
    """

    number: int
    attempt: int
    readings: Sequence[Reading] = ()
    examples: Sequence[ExampleRecord] = ()
    artefact: ArtefactRecord | None = None
    state: TrialState = TrialState.RUNNING
    score: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check that the end fits, and that everything is about the same attempt."""
        is_complete, is_cut = self.state is TrialState.COMPLETE, self.state in (TrialState.PRUNED, TrialState.FAILED)
        if self.state is TrialState.QUEUED:
            raise StudiesError(f"a trial goes on running, or ends complete, pruned or failed; got {self.state}.")
        if is_complete != (self.score is not None):
            raise StudiesError(f"a score belongs to a complete trial and to no other; got {self.state}, {self.score}.")
        if self.score is not None and not math.isfinite(self.score):
            raise StudiesError(f"a final score must be finite; got {self.score}. End the trial as failed.")
        if is_cut != (self.reason is not None):
            raise StudiesError(f"a reason belongs to a pruned or failed trial; got {self.state}, {self.reason!r}.")
        owners = {(reading.trial, reading.attempt) for reading in self.readings}
        if self.artefact is not None:
            owners.add((self.artefact.trial, self.attempt))
        if owners - {(self.number, self.attempt)}:
            raise ValueError(f"an entry of trial {self.number}, attempt {self.attempt} must not speak of {owners}.")
        read = {(reading.trial, reading.step) for reading in self.readings}
        if not {(one.trial, one.step) for one in self.examples} <= read:
            raise ValueError(f"examples of trial {self.number} must be of readings of the same entry.")


def settle_all(
    connection: Connection, study_id: int, in_doubt: list[Dropped | None] | None, entries: Sequence[ReportEntry]
) -> list[Dropped | None]:
    """Record what several attempts report: all of it or nothing; see `studies.ledger.ledger.Ledger.settle`."""
    told = zip(entries, in_doubt or [None] * len(entries), strict=True)
    return [_settle(connection, study_id, entry, earlier) for entry, earlier in told]


def _settle(connection: Connection, study_id: int, entry: ReportEntry, in_doubt: Dropped | None) -> Dropped | None:
    """Record an entry if its attempt is the one that runs; else nothing, and None is returned.

    A reading of a step that was measured before is ignored: the first stands. The newest two snapshots of a trial are
    kept; a trial that ends keeps none.
    """
    attempt = {"of_attempt": entry.attempt}
    key = {"of_study": study_id, "of_number": entry.number}
    trial = connection.execute(_FIND, key | attempt).one_or_none()
    if trial is None:
        # Nobody else writes under the keeper's epoch: if the run in doubt found the attempt running, it also ended it.
        return in_doubt if entry.state.is_terminal else None
    of_trial = {"of_id": trial.id} | attempt
    if entry.readings:
        _add_readings(connection, entry.readings, int(trial.steps), of_trial)
    if entry.examples:
        own = {"trial_id": trial.id}
        rows = [own | {"step": one.step, "losses": one.losses, "correct": one.correct} for one in entry.examples]
        connection.execute(_insert_new(connection.dialect.name, EXAMPLES), rows)
    dropped: list[str] = []
    if entry.artefact is not None or entry.state.is_terminal:
        dropped = _turn_over_files(connection, trial.id, entry, reads.folder(connection, study_id))
    if entry.state.is_terminal:
        _end(connection, entry, of_trial)
    return tuple(sorted({*dropped, *(in_doubt or ())}))


@cache
def _insert_new(dialect: str, table: Table) -> Insert:
    """Inserts rows whose keys are not there yet; a dialect is loaded where it is used."""
    statement: Insert = import_module(f"sqlalchemy.dialects.{dialect}").insert(table).on_conflict_do_nothing()
    return statement


def _add_readings(connection: Connection, readings: Sequence[Reading], steps: int, of_trial: dict[str, Any]) -> None:
    """Insert new readings and move the trial's progress on."""
    statement, heard = _insert_new(connection.dialect.name, READINGS), {"heard_at": WRITTEN_TIME.now()}
    connection.execute(statement, [reading_to_row(reading, of_trial["of_id"]) | heard for reading in readings])
    newest = max(readings, key=lambda reading: reading.step)
    if newest.step > steps:
        connection.execute(_PROGRESS, of_trial | {"new_steps": newest.step, "new_last_score": float(newest.score)})


def _turn_over_files(connection: Connection, trial_id: int, entry: ReportEntry, folder: Path | None) -> list[str]:
    """Add the entry's file, drop what is no longer needed, and return the paths that no row names any more."""
    rows = list(connection.execute(_FILES, {"of_id": trial_id}))
    stale = []
    if entry.artefact is not None:
        same = (entry.artefact.kind, entry.artefact.step)
        stale = [row for row in rows if (row.kind, row.step) == same]
        rows = [row for row in rows if (row.kind, row.step) != same]
    snapshots = [row for row in rows if row.kind == "snapshot"]
    keep, incoming = 0, _incoming(entry, folder)
    if not entry.state.is_terminal:
        keep = KEPT_SNAPSHOTS - (incoming is not None and incoming.kind == "snapshot")
    stale += snapshots[: max(0, len(snapshots) - keep)]
    if stale:
        connection.execute(delete(ARTEFACTS).where(ARTEFACTS.c.id.in_([row.id for row in stale])))
    dropped = [row.path for row in stale]
    if incoming is not None:
        values = asdict(incoming) | {"trial_id": trial_id}
        connection.execute(insert(ARTEFACTS), {name: value for name, value in values.items() if name != "trial"})
    elif entry.artefact is not None:
        dropped.append(written_file(entry.artefact.path, folder))
    kept = {row.path for row in rows if row not in stale} | ({incoming.path} if incoming is not None else set())
    return sorted(found_file(path, folder) for path in set(dropped) - kept)


def _incoming(entry: ReportEntry, folder: Path | None) -> ArtefactRecord | None:
    """The entry's file as it is written, unless it is the snapshot of a trial that ends: nobody will continue it."""
    artefact = entry.artefact
    if artefact is None or (artefact.kind == "snapshot" and entry.state.is_terminal):
        return None
    return replace(artefact, path=written_file(artefact.path, folder))


def _end(connection: Connection, entry: ReportEntry, of_trial: dict[str, Any]) -> None:
    """Give the trial and its attempt the same end at the same time."""
    values = {
        "new_state": entry.state.value,
        "new_score": None if entry.score is None else float(entry.score),
        "new_reason": None if entry.reason is None else clean(entry.reason),
        "now": WRITTEN_TIME.now(),
    }
    connection.execute(_END_TRIAL, of_trial | values)
    connection.execute(_END_ATTEMPT, of_trial | {"new_state": values["new_state"], "now": values["now"]})
