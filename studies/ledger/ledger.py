"""The ledger: the only truth about what was tried.

Every verb is one transaction, on SQLite and PostgreSQL alike. Verbs that write for a keeper take its epoch and raise
`FencedError`, having written nothing, when another keeper has taken over.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection

from studies.ledger import copies, holds, keeper_writes, leases, migrations, reads, reports
from studies.ledger.copies import Copied
from studies.ledger.database import Database, Patience
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.reports import Dropped
from studies.records.reading import TrialReport
from studies.records.study import ConfirmationRecord, NewStudy, StudyRecord
from studies.records.trial import TrialRecord
from trial_runner.requests import Reading

T = TypeVar("T")
P = ParamSpec("P")


def _read(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Ledger", P], T]:
    """A verb that reads one consistent state."""

    @wraps(work)
    def verb(self: "Ledger", /, *given: P.args, **named: P.kwargs) -> T:
        return self.read(lambda link: work(link, *given, **named))

    return verb


def _write(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate["Ledger", P], T]:
    """A verb that writes."""

    @wraps(work)
    def verb(self: "Ledger", /, *given: P.args, **named: P.kwargs) -> T:
        return self._database.write(lambda link, _: work(link, *given, **named))

    return verb


def _keep(work: Callable[Concatenate[Connection, int, P], T]) -> Callable[Concatenate["Ledger", int, int, P], T]:
    """A verb of a keeper, who gives its epoch after the key of the study."""

    @wraps(work)
    def told(link: Connection, study_id: int, _: T | None, /, *given: P.args, **named: P.kwargs) -> T:
        return work(link, study_id, *given, **named)

    return _keep_once(told)


def _keep_once(
    work: Callable[Concatenate[Connection, int, T | None, P], T],
) -> Callable[Concatenate["Ledger", int, int, P], T]:
    """The same of what is told the result of a run in doubt, see `Database.write`."""

    @wraps(work)
    def verb(self: "Ledger", study_id: int, epoch: int, /, *given: P.args, **named: P.kwargs) -> T:
        def fenced(link: Connection, in_doubt: T | None) -> T:
            keeper_writes.check_epoch(link, study_id, epoch)
            return work(link, study_id, in_doubt, *given, **named)

        return self._database.write(fenced)

    return verb


class Ledger(AbstractContextManager["Ledger"]):
    """The studies of one storage. Open it with `Ledger.open`; safe to use from several threads."""

    def __init__(self, database: Database) -> None:
        """Take an open database over."""
        self._database = database

    @classmethod
    def open(cls, url: str, *, create: bool = True, read_only: bool = False, patience: Patience | None = None) -> Self:
        """Open a storage.

        Args:
            url: ``sqlite:///FILE`` or ``postgresql://user@host/database``.
            create: Create the database's tables, or upgrade them, where needed.
            read_only: Refuse every write; never create anything, whatever ``create`` says.
            patience: How long to wait, now and later, while it is locked or away.

        Raises:
            StorageError: If it cannot be opened, or holds no studies and may not be created.
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
        """Where it is, without a password."""
        return self._database.address.shown

    @property
    def file(self) -> Path | None:
        """The database file; None of a server."""
        return self._database.address.file

    @property
    def home(self) -> Path | None:
        """The folder of the database file; None of a server."""
        return self._database.address.home

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __exit__(self, *raised: object) -> None:
        """Close it."""
        self.close()

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of ``work`` on one consistent state; for modules of the store."""
        return self._database.read(work)

    # Studies

    def create_study(
        self, study: NewStudy, trials: Sequence[TrialRecord] = (), confirmation: ConfirmationRecord | None = None
    ) -> StudyRecord:
        """Create a study, with its first trials already queued; a confirmation with what it is.

        Raises:
            StudiesError: If its name is taken.
        """

        def work(link: Connection, in_doubt: StudyRecord | None) -> StudyRecord:
            created = keeper_writes.add_study(link, study, in_doubt)
            if confirmation is not None:
                keeper_writes.add_confirmation(link, created.id, confirmation)
            keeper_writes.add_trials(link, created.id, trials)
            return created

        return self._database.write(work)

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
    check_is_free = _write(keeper_writes.check_is_free)

    def copy_from(self, other: "Ledger", studies: Collection[str] | None = None) -> list[Copied]:
        """Take studies in from another ledger; None takes all. One that is here already is left as it is.

        A confirmation is taken with its study. What is taken is one state of the other, also while a launch writes.
        """

        def work(source: Connection) -> list[Copied]:
            found = reads.studies(source)
            wanted = {study.id for study in found if studies is None or study.name in studies}
            wanted |= {study.parent_id for study in found if study.id in wanted and study.parent_id is not None}
            chosen = [study for study in found if study.id in wanted]
            return self._database.write(lambda link, _: copies.copy_studies(source, link, chosen))

        return other.read(work)

    # Who runs a study, and who has joined

    holder = _read(holds.holder)
    hold = _write(holds.hold)

    def let_go(self, study_id: int, launch: str) -> None:
        """Note that a launch no longer runs a study; tried once, for whoever ends waits for nobody."""
        with self._database.once(writes=True) as link:
            holds.let_go(link, study_id, launch)

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
        self, study_id: int, epoch: int, trial: int, attempt: int, *, readings: Sequence[Reading] = (), **told: Any
    ) -> Dropped | None:
        """Record what a running attempt reports, the last reading as in a `TrialReport`. All or nothing.

        A reading of a step that was measured before is ignored, because the first one stands; so a final score is the
        score of the trial's last reading *in the ledger*. The newest two snapshots of a trial are kept, and none once
        it has ended; a ``delta`` stays. Files are the caller's: it writes one before this call and deletes those that
        are returned after it.

        Returns:
            The files that no row names any more; None when the attempt does not run any more (late, or told before).
        """
        given = [TrialReport(trial=trial, attempt=attempt, reading=one) for one in readings[:-1]]
        last = readings[-1] if readings else None
        given.append(TrialReport(trial=trial, attempt=attempt, reading=last, **told))
        return self.settle_all(study_id, epoch, given)[-1]

    def record_event(
        self, study_id: int, kind: str, text: str, *, trial: int | None = None, epoch: int | None = None
    ) -> None:
        """Record something worth knowing later; ``epoch`` when a keeper says it."""

        def work(link: Connection, _: None) -> None:
            if epoch is not None:
                keeper_writes.check_epoch(link, study_id, epoch)
            keeper_writes.add_event(link, study_id, kind, text, trial)

        self._database.write(work)

    annotate = _write(keeper_writes.annotate)

    # Records

    trial = _read(reads.trial)
    trials = _read(reads.trials)
    outlines = _read(reads.outlines)
    attempts = _read(reads.attempts)
    losses = _read(leases.losses)
    readings = _read(reads.readings)
    readings_by_trial = _read(reads.readings_by_trial)
    examples = _read(reads.examples)
    example_counts = _read(reads.example_counts)
    artefacts = _read(reads.artefacts)
    events = _read(reads.events)
    said_by_people = _read(reads.said_by_people)
    to_stop = _read(reads.to_stop)
