"""Reads of the ledger as records. Every function works inside a transaction of the caller."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, bindparam, func, or_, select

from search_space.closest_name import name_hint
from studies.errors import ConfirmationError, DamagedError, UnknownStudyError, UnknownTrialError
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.ledger.database import address_of, home_of
from studies.ledger.files import found_file, found_folder
from studies.ledger.rows import (
    checked_row,
    columns_of,
    confirmation_from_row,
    named_rows,
    reading_from_row,
    study_from_row,
    trial_columns,
    trial_from_row,
    word_of,
)
from studies.ledger.tables import ARTEFACTS, ATTEMPTS, CONFIRMATIONS, EVENTS, EXAMPLES, READINGS, STUDIES, TRIALS
from studies.records.reading import ArtefactRecord, ExampleCounts, ExampleRecord
from studies.records.study import ConfirmationRecord, EventKind, EventRecord, StudyRecord
from studies.records.trial import AttemptRecord, RankedTrial, TrialOutline, TrialRecord, TrialState, TrialTally
from trial_runner.requests import Reading

_PARENTS = STUDIES.alias()
_CONFIRMATIONS = (
    select(CONFIRMATIONS, _PARENTS.c.name.label("study"))
    .join(STUDIES, STUDIES.c.id == CONFIRMATIONS.c.study_id)
    .join(_PARENTS, _PARENTS.c.id == STUDIES.c.parent_id)
)
_TRIALS = (
    select(*trial_columns(TrialRecord)).where(TRIALS.c.study_id == bindparam("study_id")).order_by(TRIALS.c.number)
)
_TRIAL = _TRIALS.where(TRIALS.c.number == bindparam("number"))


def study(connection: Connection, name: str) -> StudyRecord:
    """Return the study of a name.

    Raises:
        UnknownStudyError: If there is none.
    """
    known = {record.name: record for record in studies(connection)}
    if name in known:
        return known[name]
    contents = f"it contains: {', '.join(known)}." if known else "it contains none. Launch one first."
    raise UnknownStudyError(f"no study '{name}' in {address_of(connection).shown}; {contents}{name_hint(name, known)}")


def studies(connection: Connection) -> list[StudyRecord]:
    """Return all studies, oldest first."""
    home = home_of(connection)
    return [study_from_row(row, home) for row in named_rows(connection.execute(select(STUDIES).order_by(STUDIES.c.id)))]


def folder(connection: Connection, study_id: int) -> Path | None:
    """Return the folder of a study's files; None before its first launch."""
    named = select(STUDIES.c.folder, STUDIES.c.name).where(STUDIES.c.id == study_id)
    row = connection.execute(named).one_or_none()
    return None if row is None else found_folder(row.folder, row.name, home_of(connection))


def confirmations(connection: Connection, study_id: int) -> list[StudyRecord]:
    """Return the confirmations of a study, oldest first."""
    return [study for study in studies(connection) if study.parent_id == study_id]


def confirmation(connection: Connection, study: StudyRecord) -> ConfirmationRecord:
    """Return the request of a confirmation.

    Raises:
        ConfirmationError: If the study is not a confirmation.
    """
    rows = named_rows(connection.execute(_CONFIRMATIONS.where(CONFIRMATIONS.c.study_id == study.id)))
    row = next(rows, None)
    if row is None:
        raise ConfirmationError(f"'{study.name}' must be a confirmation; got a search study.")
    return confirmation_from_row(row)


def state_counts(connection: Connection, study_id: int) -> dict[TrialState, int]:
    """Return the number of trials in each state, zeros included."""
    counts = select(TRIALS.c.state, func.count()).where(TRIALS.c.study_id == study_id).group_by(TRIALS.c.state)
    found = {word_of(TrialState, state): count for state, count in connection.execute(counts)}
    return dict.fromkeys(TrialState, 0) | found


def tally(connection: Connection, study_id: int) -> TrialTally:
    """Return the trial counts, the best score and the last end of a study."""
    of_study = TRIALS.c.study_id == study_id
    trained = func.coalesce(TRIALS.c.replicate_of, TRIALS.c.number)
    means = select(func.avg(TRIALS.c.score).label("score")).where(of_study).group_by(trained).subquery()
    best = connection.execute(select(func.max(means.c.score))).scalar_one()
    ended_at = connection.execute(select(func.max(TRIALS.c.ended_at)).where(of_study)).scalar_one()
    return TrialTally(counts=state_counts(connection, study_id), best=best, ended_at=ended_at)


def reading_count(connection: Connection, study_id: int) -> int:
    """Return the number of readings of all trials."""
    counted = select(func.count()).select_from(READINGS).join(TRIALS, READINGS.c.trial_id == TRIALS.c.id)
    return int(connection.execute(counted.where(TRIALS.c.study_id == study_id)).scalar_one())


def trial(connection: Connection, study_id: int, number: int) -> TrialRecord:
    """Return one trial.

    Raises:
        UnknownTrialError: If the study has no such number.
    """
    row = connection.execute(_TRIAL, {"study_id": study_id, "number": number}).one_or_none()
    if row is not None:
        return trial_from_row(row, TrialRecord)
    count = sum(state_counts(connection, study_id).values())
    contents = f"the study has 0 to {count - 1}" if count else "the study has none yet"
    raise UnknownTrialError(f"no trial {number}; {contents}.")


def trials(connection: Connection, study_id: int, states: Collection[TrialState] | None = None) -> list[TrialRecord]:
    """Return the trials in the order of their numbers 0, 1, 2, ….

    Raises:
        DamagedError: If one is missing.
    """
    if states is not None:
        chosen = _TRIALS.where(TRIALS.c.state.in_([state.value for state in states]))
        return [trial_from_row(row, TrialRecord) for row in connection.execute(chosen, {"study_id": study_id})]
    found = trials_as_they_are(connection, study_id)
    _check_whole(found)
    return found


def outlines(connection: Connection, study_id: int, first: int = 0) -> list[TrialOutline]:
    """Return the trials from a number on without their configurations, in the order of their numbers.

    Raises:
        DamagedError: If one is missing.
    """
    rows = select(*trial_columns(TrialOutline)).where(TRIALS.c.study_id == study_id, TRIALS.c.number >= first)
    found = [trial_from_row(row, TrialOutline) for row in connection.execute(rows.order_by(TRIALS.c.number))]
    _check_whole(found, first)
    return found


def _check_whole(found: Sequence[RankedTrial], first: int = 0) -> None:
    if found and (found[0].number, found[-1].number) != (first, first + len(found) - 1):
        missing = min({*range(first, first + len(found))} - {trial.number for trial in found})
        raise DamagedError.of("every trial of a study", ValueError(f"{missing} is missing"))


def trials_as_they_are(connection: Connection, study_id: int) -> list[TrialRecord]:
    """Return the trials in the order of their numbers, even if one is missing."""
    return [trial_from_row(row, TrialRecord) for row in connection.execute(_TRIALS, {"study_id": study_id})]


def attempts(connection: Connection, study_id: int, number: int | None = None) -> list[AttemptRecord]:
    """Return the attempts at one trial, or at all, in order."""
    rows = _rows(connection, AttemptRecord, ATTEMPTS, study_id, number)
    return [AttemptRecord(**checked_row(row, ATTEMPTS)) for row in rows]


def readings(connection: Connection, study_id: int, number: int | None = None) -> list[Reading]:
    """Return the readings of one trial, or of all, in the order of their steps."""
    return [reading_from_row(row) for row in _rows(connection, Reading, READINGS, study_id, number)]


def readings_by_trial(connection: Connection, study_id: int) -> dict[int, list[Reading]]:
    """Return the readings of all trials by trial number, each in the order of their steps."""
    by_trial: dict[int, list[Reading]] = {}
    for reading in readings(connection, study_id):
        by_trial.setdefault(reading.trial, []).append(reading)
    return by_trial


def history(connection: Connection, study_id: int, noise: ScoreNoise) -> StudyHistory:
    """Return the past of a study; its readings have the given precision."""
    return StudyHistory.of(trials(connection, study_id), readings_by_trial(connection, study_id), noise)


def examples(connection: Connection, study_id: int, number: int | None = None) -> list[ExampleRecord]:
    """Return the measurements by example of one trial, or of all, in the order of their steps."""
    rows = _rows(connection, ExampleRecord, EXAMPLES, study_id, number)
    try:
        return [ExampleRecord(**checked_row(row, EXAMPLES)) for row in rows]
    except ValueError as error:
        raise DamagedError.of("examples", error) from error


def example_counts(connection: Connection, study_id: int) -> ExampleCounts | None:
    """Return the numbers of examples of a study's readings; None if they were not recorded."""
    longest = select(EXAMPLES.c.step, func.max(func.length(EXAMPLES.c.losses))).group_by(EXAMPLES.c.step)
    of_study = longest.join_from(EXAMPLES, TRIALS, EXAMPLES.c.trial_id == TRIALS.c.id)
    found = connection.execute(of_study.where(TRIALS.c.study_id == study_id))
    by_step = {int(step): int(size) // 2 for step, size in found}
    if not by_step:
        return None
    last = max(by_step)
    return ExampleCounts(
        whole=by_step[last], rungs=max((count for step, count in by_step.items() if step < last), default=by_step[last])
    )


def artefacts(connection: Connection, study_id: int, number: int | None = None) -> list[ArtefactRecord]:
    """Return the files of one trial, or of all, the newest of each trial last."""
    place = folder(connection, study_id)
    rows = [checked_row(row, ARTEFACTS) for row in _rows(connection, ArtefactRecord, ARTEFACTS, study_id, number)]
    return [ArtefactRecord(**row | {"path": found_file(row["path"], place)}) for row in rows]


def events(
    connection: Connection, study_id: int, kinds: Collection[EventKind] | None = None, newest: int | None = None
) -> list[EventRecord]:
    """Return the events of a study, of some kinds or of all, oldest first; at most the newest ones, if wanted."""
    rows = select(*columns_of(EventRecord, EVENTS)).where(EVENTS.c.study_id == study_id).order_by(EVENTS.c.id.desc())
    if kinds is not None:
        rows = rows.where(EVENTS.c.kind.in_([kind.value for kind in kinds]))
    found = named_rows(connection.execute(rows.limit(newest)))
    return [EventRecord(**checked_row(row, EVENTS)) for row in reversed(list(found))]


def user_events(connection: Connection, study_id: int) -> list[EventRecord]:
    """Return notes, tags and stop requests, oldest first."""
    return events(connection, study_id, (EventKind.NOTE, EventKind.TAGS, EventKind.STOP))


def user_events_after(connection: Connection, study_id: int, key: int) -> tuple[int, list[EventRecord]]:
    """Return the key of the newest note, tags or stop request, and those after an earlier key, oldest first."""
    kinds = [kind.value for kind in (EventKind.NOTE, EventKind.TAGS, EventKind.STOP)]
    own = EVENTS.c.study_id == study_id, EVENTS.c.kind.in_(kinds), EVENTS.c.id > key
    rows = connection.execute(select(EVENTS.c.id, *columns_of(EventRecord, EVENTS)).where(*own).order_by(EVENTS.c.id))
    found = [checked_row(row, EVENTS) for row in named_rows(rows)]
    keys = [one.pop("id") for one in found]
    return max(keys, default=key), [EventRecord(**one) for one in found]


def to_stop(connection: Connection, study_id: int) -> frozenset[int | None]:
    """Return the trials whose stop was requested, and None if that of the study was since the takeover."""
    of_study = EVENTS.c.study_id == study_id
    takeovers = select(func.max(EVENTS.c.id)).where(of_study, EVENTS.c.kind == EventKind.TAKEOVER.value)
    still_asked = or_(EVENTS.c.trial.is_not(None), EVENTS.c.id > takeovers.scalar_subquery())
    asked = select(EVENTS.c.trial).where(of_study, EVENTS.c.kind == EventKind.STOP.value, still_asked)
    return frozenset(connection.execute(asked).scalars())


def _rows(
    connection: Connection, record: type, table: Table, study_id: int, number: int | None
) -> Iterator[dict[str, Any]]:
    """Return the records of a table by trial and key, of one trial or of all."""
    rows = select(*columns_of(record, table)).join_from(table, TRIALS, table.c.trial_id == TRIALS.c.id)
    if number is not None:
        rows = rows.where(TRIALS.c.number == number)
    (*_, key) = table.primary_key.columns
    return named_rows(connection.execute(rows.where(TRIALS.c.study_id == study_id).order_by(TRIALS.c.number, key)))
