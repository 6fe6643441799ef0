"""Ledger: the only record of all trials.

Every operation is one transaction, on SQLite and PostgreSQL alike. Operations of a keeper take its epoch, and raise
`FencedError` without writing if another keeper has taken over.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection

from studies.ledger import copies, holds, keeper_writes, leases, migrations, reads, reports
from studies.ledger.copies import Copied
from studies.ledger.database import Database, Patience
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.records.reading import TrialReport
from studies.records.study import ConfirmationRecord, NewStudy, StudyRecord
from studies.records.trial import TrialRecord
from trial_runner.requests import Reading

T = TypeVar("T")
P = ParamSpec("P")


def _read(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Ledger", P], T]:
    """Return a method that reads one consistent state."""

    @wraps(work)
    def method(self: "Ledger", /, *given: P.args, **named: P.kwargs) -> T:
        return self.read(lambda link: work(link, *given, **named))

    return method


def _write(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Ledger", P], T]:
    """Return a method that writes."""

    @wraps(work)
    def method(self: "Ledger", /, *given: P.args, **named: P.kwargs) -> T:
        return self.database.write(lambda link, _: work(link, *given, **named))

    return method


def _keep(work: Callable[Concatenate[Connection, int, P], T]) -> Callable[Concatenate["Ledger", int, int, P], T]:
    """Return a method of a keeper, which passes its epoch after the key of the study."""

    @wraps(work)
    def ignoring_doubt(link: Connection, study_id: int, _: T | None, /, *given: P.args, **named: P.kwargs) -> T:
        return work(link, study_id, *given, **named)

    return _keep_once(ignoring_doubt)


def _keep_once(
    work: Callable[Concatenate[Connection, int, T | None, P], T],
) -> Callable[Concatenate["Ledger", int, int, P], T]:
    """Return the same for a function that receives the result of a run in doubt; see `Database.write`."""

    @wraps(work)
    def method(self: "Ledger", study_id: int, epoch: int, /, *given: P.args, **named: P.kwargs) -> T:
        def fenced(link: Connection, in_doubt: T | None) -> T:
            keeper_writes.check_epoch(link, study_id, epoch)
            return work(link, study_id, in_doubt, *given, **named)

        return self.database.write(fenced)

    return method


class Ledger(AbstractContextManager["Ledger"]):
    """Studies of one storage. Open it with `Ledger.open`; it is thread-safe.

    Attributes:
        database: Open database.
    """

    def __init__(self, database: Database) -> None:
        """Use an open database."""
        self.database = database

    @classmethod
    def open(cls, url: str, *, create: bool = True, read_only: bool = False, patience: Patience | None = None) -> Self:
        """Open a storage.

        Args:
            url: ``sqlite:///FILE`` or ``postgresql://user@host/database``.
            create: Whether to create or upgrade the database's tables if needed.
            read_only: Whether to refuse every write; nothing is created then, whatever ``create`` is.
            patience: Patience with a locked or unreachable database.

        Raises:
            StorageError: If it cannot be opened, or has no studies and may not be created.
            SchemaVersionError: If its tables are of another version and may not be upgraded.
        """
        address = StorageAddress.parse(url)
        writing = Access.CREATE if create else Access.WRITE
        database = Database(open_engine(address, Access.READ if read_only else writing), address, patience)
        try:
            migrations.prepare(database, may_create=create and not read_only)
        except BaseException:
            database.close()
            raise
        return cls(database)

    @property
    def url(self) -> str:
        """URL without a password."""
        return self.database.address.shown

    def with_patience(self, patience: Patience) -> "Ledger":
        """Return this open ledger with patience with a locked or unreachable database."""
        return Ledger(self.database.with_patience(patience))

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __exit__(self, *raised: object) -> None:
        """Close the ledger."""
        self.close()

    def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work`` on one consistent state; for modules of this package."""
        return self.database.read(work)

    # Studies

    def create_study(
        self, study: NewStudy, trials: Sequence[TrialRecord] = (), confirmation: ConfirmationRecord | None = None
    ) -> StudyRecord:
        """Create a study with its first trials queued, or a confirmation with its request.

        Raises:
            StudiesError: If its name is taken.
        """

        def work(link: Connection, in_doubt: StudyRecord | None) -> StudyRecord:
            created = keeper_writes.add_study(link, study, in_doubt)
            if confirmation is not None:
                keeper_writes.add_confirmation(link, created.id, confirmation)
            keeper_writes.add_trials(link, created.id, trials)
            return created

        return self.database.write(work)

    study = _read(reads.study)
    studies = _read(reads.studies)
    confirmation = _read(reads.confirmation)
    confirmations = _read(reads.confirmations)
    set_contenders = _write(keeper_writes.set_contenders)
    set_inputs = _write(keeper_writes.set_inputs)
    state_counts = _read(reads.state_counts)
    tally = _read(reads.tally)
    reading_count = _read(reads.reading_count)
    rename = _write(keeper_writes.rename)
    remove = _write(keeper_writes.remove)
    move_folder = _write(keeper_writes.move_folder)

    def copy_from(self, other: "Ledger", studies: Collection[str] | None = None) -> list[Copied]:
        """Copy studies of another ledger, all if None; studies that exist here are left unchanged.

        A confirmation is copied with its study. The copy is one consistent state even while a launch writes.
        """

        def work(source: Connection) -> list[Copied]:
            present = reads.studies(source)
            wanted = {study.id for study in present if studies is None or study.name in studies}
            wanted |= {study.parent_id for study in present if study.id in wanted and study.parent_id is not None}
            chosen = [study for study in present if study.id in wanted]
            return self.database.write(lambda link, _: copies.copy_studies(source, link, chosen))

        return other.read(work)

    # Holds

    holder = _read(holds.holder)
    hold = _write(holds.hold)

    def release_hold(self, study_id: int, launch: str) -> None:
        """Release the hold of a launch, in one try, since an ending launch does not wait."""
        with self.database.once(writes=True) as link:
            holds.release_hold(link, study_id, launch)

    # Writes of a keeper

    take_over = _write(keeper_writes.take_over)
    keepers = _read(keeper_writes.keepers)
    renew_hold = _keep(holds.renew_hold)
    place = _keep(keeper_writes.place)
    add_trials = _keep(keeper_writes.add_trials)
    renew = _keep(leases.renew)
    lease_all = _keep_once(leases.lease_all)
    release = _keep_once(leases.release)
    settle_all = _keep_once(reports.settle_all)

    def settle(
        self, study_id: int, epoch: int, trial: int, attempt: int, *, readings: Sequence[Reading] = (), **fields: Any
    ) -> tuple[str, ...] | None:
        """Record the report of a running attempt atomically, its last reading as in a `TrialReport`.

        A second reading of a step is ignored, so a final score is the score of the trial's last reading *in the
        ledger*. The newest two snapshots of a trial are kept, and none once it has ended; a ``delta`` stays. The
        caller writes a file before this call and deletes the returned ones after it.

        Returns:
            Files that no row names any more; None if the attempt is not running (a late or repeated report).
        """
        reports_ = [TrialReport(trial=trial, attempt=attempt, reading=one) for one in readings[:-1]]
        last = readings[-1] if readings else None
        reports_.append(TrialReport(trial=trial, attempt=attempt, reading=last, **fields))
        settled = self.settle_all(study_id, epoch, reports_)[-1]
        return None if settled is None else settled.unlinked

    def record_event(
        self, study_id: int, kind: str, text: str, *, trial: int | None = None, epoch: int | None = None
    ) -> None:
        """Record an event; ``epoch`` for events of a keeper."""

        def work(link: Connection, _: None) -> None:
            if epoch is not None:
                keeper_writes.check_epoch(link, study_id, epoch)
            keeper_writes.add_event(link, study_id, kind, text, trial)

        self.database.write(work)

    annotate = _write(keeper_writes.annotate)

    # Records

    trial = _read(reads.trial)
    trials = _read(reads.trials)
    history = _read(reads.history)
    outlines = _read(reads.outlines)
    attempts = _read(reads.attempts)
    losses = _read(leases.losses)
    readings = _read(reads.readings)
    readings_by_trial = _read(reads.readings_by_trial)
    examples = _read(reads.examples)
    example_counts = _read(reads.example_counts)
    artefacts = _read(reads.artefacts)
    events = _read(reads.events)
    user_events = _read(reads.user_events)
    user_events_after = _read(reads.user_events_after)
    to_stop = _read(reads.to_stop)
