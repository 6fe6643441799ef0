"""Writes to a study: the fence of keepers, creation, digests, renaming and deletion.

Every function works inside a transaction of the caller.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, func, insert, literal, select, update

from studies.errors import FencedError, InvalidRequestError, StudiesError, UnknownStudyError
from studies.ledger import holds, reads
from studies.ledger.clock import WRITTEN_TIME
from studies.ledger.copies import with_name
from studies.ledger.database import address_of, home_of
from studies.ledger.files import written_folder
from studies.ledger.rows import clean, named_rows, study_from_row, trial_columns, trial_from_row, trial_to_row
from studies.ledger.tables import ARTEFACTS, ATTEMPTS, CONFIRMATIONS, EVENTS, EXAMPLES, READINGS, STUDIES, TRIALS
from studies.records.study import (
    Annotation,
    ConfirmationRecord,
    Contender,
    EventKind,
    EventRecord,
    NewStudy,
    StudyRecord,
    annotations_of,
)
from studies.records.trial import TrialRecord, TrialState

_LOCKED_STUDY = select(STUDIES.c.name, STUDIES.c.epoch).where(STUDIES.c.id == bindparam("study_id")).with_for_update()
_NEXT_NUMBER = select(func.coalesce(func.max(TRIALS.c.number) + 1, 0)).where(TRIALS.c.study_id == bindparam("study_id"))
_SPAN = (TRIALS.c.study_id == bindparam("study_id"), TRIALS.c.number.between(bindparam("first"), bindparam("last")))
_TRIALS_BETWEEN = select(*trial_columns(TrialRecord)).where(*_SPAN).order_by(TRIALS.c.number)
_FIRST_ATTEMPTS = insert(ATTEMPTS).from_select(
    ["trial_id", "attempt", "worker", "lease_expires_at", "started_at"],
    select(
        TRIALS.c.id,
        literal(1, literal_execute=True),
        bindparam("worker", type_=ATTEMPTS.c.worker.type),
        bindparam("lease_expires_at", type_=ATTEMPTS.c.lease_expires_at.type),
        bindparam("started_at", type_=ATTEMPTS.c.started_at.type),
    ).where(*_SPAN),
)
_IS = " is "
MOST_NOTES = 1_000
"""Largest number of notes that are saved in a study, changes counted; of tags, too."""

MOST_NOTE_BYTES = 10_000
"""Largest size of a note, or of tags, in UTF-8."""

_SHOWN = 200

LEASE_SECONDS = 60.0
"""Default number of seconds for which a worker may be silent."""


def _locked(connection: Connection, study_id: int) -> tuple[str, int]:
    """Lock a study until the transaction ends; return its name and epoch.

    Raises:
        UnknownStudyError: If there is none.
    """
    study = connection.execute(_LOCKED_STUDY, {"study_id": study_id}).one_or_none()
    if study is None:
        raise UnknownStudyError(f"no study of id {study_id}; it may have been deleted.")
    return str(study.name), int(study.epoch)


def check_epoch(connection: Connection, study_id: int, epoch: int) -> None:
    """Lock the study for this transaction and check that the caller is its keeper.

    Raises:
        FencedError: If another keeper has taken over.
        UnknownStudyError: If there is no such study.
    """
    name, newest = _locked(connection, study_id)
    if newest != epoch:
        raise FencedError(
            f"study '{name}' was taken over by keeper {newest}; this is keeper {epoch}. "
            "Nothing was written; this launch must stop."
        )


def take_over(connection: Connection, study_id: int, keeper: str) -> int:
    """Make the caller the study's keeper and return its epoch."""
    _, last = _locked(connection, study_id)
    begun = select(func.max(ATTEMPTS.c.started_at)).join_from(ATTEMPTS, TRIALS, ATTEMPTS.c.trial_id == TRIALS.c.id)
    newest = (
        select(func.max(EVENTS.c.at)).where(EVENTS.c.study_id == study_id),
        select(func.max(TRIALS.c.created_at)).where(TRIALS.c.study_id == study_id),
        select(func.max(TRIALS.c.ended_at)).where(TRIALS.c.study_id == study_id),
        begun.where(TRIALS.c.study_id == study_id),
    )
    times = [at for one in newest if (at := connection.execute(one).scalar()) is not None]
    WRITTEN_TIME.follow(max(times, default=WRITTEN_TIME.now()))
    epoch = last + 1
    connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(epoch=epoch))
    add_event(connection, study_id, EventKind.TAKEOVER, f"keeper {epoch}{_IS}{keeper}")
    return epoch


def place(connection: Connection, study_id: int, folder: Path) -> None:
    """Record the folder of a study's files."""
    written = written_folder(folder, home_of(connection))
    connection.execute(update(STUDIES).where(STUDIES.c.id == study_id).values(folder=written))


def keepers(connection: Connection, study_id: int) -> list[str]:
    """Return the names of all keepers of the study in order."""
    return [event.text.partition(_IS)[2] for event in reads.events(connection, study_id, (EventKind.TAKEOVER,))]


def add_event(connection: Connection, study_id: int, kind: str, text: str, trial: int | None = None) -> None:
    """Record an event at the present time."""
    event = {"study_id": study_id, "at": WRITTEN_TIME.now(), "kind": str(kind), "trial": trial, "text": clean(text)}
    connection.execute(insert(EVENTS), event)


def add_study(connection: Connection, study: NewStudy, in_doubt: StudyRecord | None) -> StudyRecord:
    """Create a study.

    Raises:
        StudiesError: If its name is taken.
    """
    address = address_of(connection)
    named = select(STUDIES).where(STUDIES.c.name == study.name)
    for row in named_rows(connection.execute(named)):
        found = study_from_row(row, address.home)
        if in_doubt is not None and found.created_at == in_doubt.created_at:
            return found
        raise StudiesError(
            f"the name of a new study must be unique; got '{study.name}', which exists in {address.shown}. "
            "Choose another one."
        )
    values = {name: getattr(study, name) for name in NewStudy.__dataclass_fields__}
    values |= {"specification": dict(study.specification), "kind": study.kind.value}
    values |= {"epoch": 0, "created_at": WRITTEN_TIME.now()}
    connection.execute(insert(STUDIES), values)
    (row,) = named_rows(connection.execute(named))
    return study_from_row(row, address.home)


def set_inputs(connection: Connection, study: StudyRecord, inputs: Mapping[str, object]) -> StudyRecord:
    """Record the digest of the inputs of a study, and return the study with it.

    Raises:
        UnknownStudyError: If it was deleted.
    """
    _locked(connection, study.id)
    named = select(STUDIES).where(STUDIES.c.id == study.id)
    present = connection.execute(named).one()
    specification = {**present.specification, "inputs": dict(inputs)}
    connection.execute(update(STUDIES).where(STUDIES.c.id == study.id).values(specification=specification))
    (row,) = named_rows(connection.execute(named))
    return study_from_row(row, home_of(connection))


def add_confirmation(connection: Connection, study_id: int, confirmation: ConfirmationRecord) -> None:
    """Record the request of a confirmation once."""
    if connection.execute(select(CONFIRMATIONS).where(CONFIRMATIONS.c.study_id == study_id)).one_or_none() is None:
        row = {name: entry for name, entry in asdict(confirmation).items() if name != "study"}
        connection.execute(insert(CONFIRMATIONS), row | {"study_id": study_id})


def set_contenders(connection: Connection, study_id: int, contenders: Sequence[Contender]) -> None:
    """Record the contenders of a confirmation with their results."""
    of_study = update(CONFIRMATIONS).where(CONFIRMATIONS.c.study_id == study_id)
    connection.execute(of_study.values(contenders=[asdict(one) for one in contenders]))


def add_trials(
    connection: Connection,
    study_id: int,
    trials: Sequence[TrialRecord],
    *,
    worker: str | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> list[TrialRecord]:
    """Record new trials, queued or running as attempt 1 of ``worker``.

    Their numbers continue the study's without a gap. An existing trial with the same fingerprint is returned unchanged.

    Raises:
        StudiesError: If the numbers leave a gap, or one belongs to another configuration.
        StorageError: If a fingerprint is in the study under another number.
    """
    if not trials:
        return []
    following: int = connection.execute(_NEXT_NUMBER, {"study_id": study_id}).scalar_one()
    numbers = [trial.number for trial in trials]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or numbers[0] > following:
        raise StudiesError(f"new trials must continue at number {following} without a gap; got {numbers}.")
    new = [trial for trial in trials if trial.number >= following]
    if new:
        _insert_trials(connection, study_id, new, worker, lease_seconds)
    span = {"study_id": study_id, "first": numbers[0], "last": numbers[-1]}
    # an earlier try may have recorded some
    records = [trial_from_row(row, TrialRecord) for row in connection.execute(_TRIALS_BETWEEN, span)]
    for trial, record in zip(trials, records, strict=True):
        if trial.fingerprint != record.fingerprint:
            raise StudiesError(
                f"trial {trial.number} must keep its configuration {record.fingerprint}; got {trial.fingerprint}. "
                "This is a bug in the keeper."
            )
    return records


def _insert_trials(
    connection: Connection, study_id: int, new: Sequence[TrialRecord], worker: str | None, lease_seconds: float
) -> None:
    now = WRITTEN_TIME.now()
    state, attempt = (TrialState.QUEUED, 0) if worker is None else (TrialState.RUNNING, 1)
    fixed = {"study_id": study_id, "state": state.value, "steps": 0, "attempt": attempt, "created_at": now}
    connection.execute(insert(TRIALS), [trial_to_row(trial) | fixed for trial in new])
    if worker is not None:
        lease = {"worker": worker, "started_at": now, "lease_expires_at": now + timedelta(seconds=lease_seconds)}
        span = {"study_id": study_id, "first": new[0].number, "last": new[-1].number}
        connection.execute(_FIRST_ATTEMPTS, lease | span)


def annotate(
    connection: Connection,
    study_id: int,
    kind: EventKind,
    text: str,
    trial: int | None = None,
    known: str | None = None,
) -> None:
    """Record a note, tags or a stop request for a study or a trial.

    Args:
        connection: Connection in a transaction.
        study_id: Key of the study.
        kind: Kind of the annotation.
        text: Its text.
        trial: Number of the trial; None for the study.
        known: Text that it replaces, as the writer read it; None to replace any.

    Raises:
        UnknownStudyError: If there is no such study.
        UnknownTrialError: If there is no such trial.
        InvalidRequestError: If the text is too long, there are too many, or the replaced text has changed since it
            was read.
    """
    _locked(connection, study_id)
    if trial is not None:
        reads.trial(connection, study_id, trial)
    if kind is not EventKind.STOP:
        _check_annotation(reads.events(connection, study_id, [kind]), kind, text, trial, known)
    add_event(connection, study_id, kind, text, trial)


def _check_annotation(
    earlier: Sequence[EventRecord], kind: EventKind, text: str, trial: int | None, known: str | None
) -> None:
    """Check a note, or tags, against the earlier ones of the study.

    Raises:
        InvalidRequestError: If it is too long, they are too many, or the one that it replaces is not the known one.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_NOTE_BYTES:
        raise InvalidRequestError(f"a note must have at most {MOST_NOTE_BYTES:,} bytes; got {size:,}. Shorten it.")
    if len(earlier) >= MOST_NOTES:
        words = "notes" if kind is EventKind.NOTE else "tags"
        raise InvalidRequestError(
            f"a study must have at most {MOST_NOTES:,} saved {words}; got one more. Keep further ones in a file."
        )
    present = annotations_of(earlier).get(trial, Annotation())
    found = present.note if kind is EventKind.NOTE else ", ".join(present.tags)
    if known is not None and found != clean(known):
        raise InvalidRequestError(
            f"the text to be replaced must be the present one; got another, since it has become {found[:_SHOWN]!r}. "
            "Save again to replace it."
        )


def check_is_free(connection: Connection, study: StudyRecord, launches: Collection[str] = ()) -> None:
    """Check that no launch runs a study, except some, until the transaction ends.

    Raises:
        StudyHeldError: If another launch runs it.
    """
    holds.lock(connection, study.id)
    present = holds.holder(connection, study.id)
    if present is not None and present.is_live and present.holder not in launches:
        raise holds.held_error(study.name, present)


def rename(connection: Connection, study: StudyRecord, name: str) -> None:
    """Rename a study.

    Raises:
        StudyHeldError: If a launch runs it.
        StudiesError: If another study has the name.
    """
    check_is_free(connection, study)
    if any(other.name == name for other in reads.studies(connection) if other.id != study.id):
        raise InvalidRequestError(
            f"the name of a study must be unique; got '{name}', which another study has. Choose another one."
        )
    values = {"name": name, "specification": with_name(study.specification, name)}
    connection.execute(update(STUDIES).where(STUDIES.c.id == study.id).values(**values))


def move_folder(connection: Connection, study: StudyRecord, folder: Path) -> None:
    """Record a new folder of a study that no launch runs.

    Raises:
        StudyHeldError: If a launch runs it.
    """
    check_is_free(connection, study)
    place(connection, study.id, folder)


def remove(connection: Connection, studies: Sequence[StudyRecord], launches: Collection[str]) -> None:
    """Delete all records of studies, confirmations before their studies; files stay.

    Args:
        launches: Launches that may hold them, such as the deleting one.

    Raises:
        StudyHeldError: If another launch runs one of them.
    """
    for study in studies:
        check_is_free(connection, study, launches)
        trials = select(TRIALS.c.id).where(TRIALS.c.study_id == study.id)
        for table in (EXAMPLES, ARTEFACTS, READINGS, ATTEMPTS):
            connection.execute(delete(table).where(table.c.trial_id.in_(trials)))
        for table in (TRIALS, EVENTS, CONFIRMATIONS):
            connection.execute(delete(table).where(table.c.study_id == study.id))
        connection.execute(delete(STUDIES).where(STUDIES.c.id == study.id))
