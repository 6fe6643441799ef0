"""The ledger: the only truth about what was tried.

Every verb is one transaction, on SQLite and PostgreSQL alike. Verbs that write for a keeper take its epoch and raise
`FencedError`, having written nothing, when another keeper has taken over.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from sqlalchemy import Connection

from studies.records import (
    ArtefactRecord,
    AttemptRecord,
    ConfirmationRecord,
    EventRecord,
    ExampleCounts,
    ExampleRecord,
    NewStudy,
    NewTrial,
    Outcome,
    ReadingRecord,
    Settlement,
    StudyRecord,
    Tally,
    TrialRecord,
    TrialState,
)
from studies.store import amending, copying, holding, keeping, leases, looking, migrations, removing, settling
from studies.store.address import StorageAddress
from studies.store.copying import Copied
from studies.store.database import Database
from studies.store.engine import Access, open_engine
from studies.store.holding import Hold
from studies.store.patience import Patience
from studies.store.places import written_folder
from studies.store.settling import Entry

T = TypeVar("T")

LEASE_SECONDS = 60.0
"""How long a worker may stay silent, unless the keeper says otherwise."""


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def read(self, work: Callable[[Connection], T]) -> T:
        """The result of ``work`` on one consistent state; for modules of the store."""
        return self._database.read(work)

    # Studies

    def create_study(
        self, study: NewStudy, trials: Sequence[NewTrial] = (), confirmation: ConfirmationRecord | None = None
    ) -> StudyRecord:
        """Create a study, with its first trials already queued; a confirmation with what it is.

        Raises:
            StudiesError: If its name is taken.
        """

        def work(link: Connection, in_doubt: StudyRecord | None) -> StudyRecord:
            created = keeping.add_study(link, study, self._database.address, in_doubt)
            if confirmation is not None:
                keeping.add_confirmation(link, created.id, confirmation)
            keeping.add_trials(link, created.id, trials, worker=None, lease_seconds=LEASE_SECONDS)
            return created

        return self._database.write(work)

    def study(self, name: str) -> StudyRecord:
        """The study of a name.

        Raises:
            UnknownStudyError: If there is none; names those that exist.
        """
        return self._database.read(lambda link: looking.study(link, name, self._database.address))

    def studies(self) -> list[StudyRecord]:
        """All studies, oldest first."""
        return self._database.read(lambda link: looking.studies(link, self.home))

    def confirmations(self, study_id: int) -> list[StudyRecord]:
        """The confirmations of a study, oldest first."""
        return [study for study in self.studies() if study.parent_id == study_id]

    def confirmation(self, study: StudyRecord) -> ConfirmationRecord:
        """What a confirmation is beside its trials.

        Raises:
            ConfirmationError: If the study is none.
        """
        return self._database.read(lambda link: looking.confirmation(link, study))

    def state_counts(self, study_id: int) -> dict[TrialState, int]:
        """How many trials are in each state, zeros included."""
        return self._database.read(lambda link: looking.state_counts(link, study_id))

    def tallies(self, known: Mapping[int, Tally] | None = None) -> dict[int, Tally]:
        """The trials of every study that has any in a few numbers, by the study's key.

        Args:
            known: What was told before; studies where nothing has ended since are not asked again.
        """
        return self._database.read(lambda link: looking.tallies(link, known or {}))

    def reading_count(self, study_id: int) -> int:
        """How many readings all trials have; with `state_counts` it tells whether a study has got any further."""
        return self._database.read(lambda link: looking.reading_count(link, study_id))

    def rename(self, study: StudyRecord, name: str) -> None:
        """Call a study otherwise.

        Raises:
            StudyHeldError: If a launch runs it.
            StudiesError: If the name is another's.
        """
        self._database.write(lambda link, _: removing.rename(link, study, name))

    def remove(self, studies: Sequence[StudyRecord]) -> None:
        """Delete all that is recorded of studies, confirmations before what they confirm; files stay.

        Raises:
            StudyHeldError: If a launch runs one of them.
        """

        def work(link: Connection, _: None) -> None:
            for study in studies:
                removing.remove(link, study)

        self._database.write(work)

    def move_folder(self, study: StudyRecord, folder: Path) -> None:
        """Note that nobody's launch has moved the files of a study.

        Raises:
            StudyHeldError: If a launch runs it.
        """

        def work(link: Connection, _: None) -> None:
            removing.check_is_free(link, study)
            keeping.place(link, study.id, written_folder(folder, self.home))

        self._database.write(work)

    def check_are_free(self, studies: Sequence[StudyRecord]) -> None:
        """See that no launch runs one of some studies.

        Raises:
            StudyHeldError: If one does.
        """

        def work(link: Connection, _: None) -> None:
            for study in studies:
                removing.check_is_free(link, study)

        self._database.write(work)

    def copy_from(self, other: "Ledger", studies: Collection[str] | None = None) -> list[Copied]:
        """Take studies in from another ledger; None takes all. One that is here already is left as it is.

        A confirmation is taken with its study. What is taken is one state of the other, also while a launch writes.
        """

        def work(source: Connection) -> list[Copied]:
            found = looking.studies(source, other.home)
            wanted = {study.id for study in found if studies is None or study.name in studies}
            wanted |= {study.parent_id for study in found if study.id in wanted and study.parent_id is not None}
            chosen = [study for study in found if study.id in wanted]
            return self._database.write(lambda link, _: copying.copy_studies(source, link, chosen, self.home))

        return other.read(work)

    # Who runs a study

    def holder(self, study_id: int) -> Hold | None:
        """The launch that runs a study, or has run it and did not say that it ended; None without one."""
        return self._database.read(lambda link: holding.holder(link, study_id))

    def hold(self, study_id: int, launch: str, seconds: float, *, instead_of: str | None = None) -> Hold | None:
        """Let a launch run a study; the one that runs it now if there is one, ``instead_of`` aside."""
        return self._database.write(lambda link, _: holding.hold(link, study_id, launch, seconds, instead_of))

    def let_go(self, study_id: int, launch: str) -> None:
        """Note that a launch no longer runs a study; tried once, for whoever ends waits for nobody."""
        with self._database.once(writes=True) as link:
            holding.let_go(link, study_id, launch)

    # Writes of a keeper

    def take_over(self, study_id: int, keeper: str) -> int:
        """Make the caller the only keeper that may write; returns its epoch. Every earlier keeper is fenced."""
        return self._database.write(lambda link, _: keeping.take_over(link, study_id, keeper))

    def place(self, study_id: int, epoch: int, folder: Path) -> None:
        """Note where the files of a study lie from now on."""

        def work(link: Connection, _: None) -> None:
            keeping.check_epoch(link, study_id, epoch)
            keeping.place(link, study_id, written_folder(folder, self.home))

        self._database.write(work)

    def renew_hold(self, study_id: int, epoch: int, launch: str, seconds: float) -> None:
        """Let the launch of a keeper run its study for longer."""

        def work(link: Connection, _: None) -> None:
            keeping.check_epoch(link, study_id, epoch)
            holding.renew_hold(link, study_id, launch, seconds)

        self._database.write(work)

    def keepers(self, study_id: int) -> list[str]:
        """Who has taken the study over, one after another."""
        return self._database.read(lambda link: keeping.keepers(link, study_id))

    def recover(self, study_id: int, epoch: int) -> list[int]:
        """Queue every running trial again, its attempt lost; returns their numbers."""
        return self._take_back(study_id, epoch, lambda link: leases.recover(link, study_id))

    def add_trials(
        self,
        study_id: int,
        epoch: int,
        trials: Sequence[NewTrial],
        *,
        worker: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> list[TrialRecord]:
        """Record new trials: queued, or already running as attempt 1 of ``worker``.

        Their numbers continue the study's without a gap. A trial that is there already, with the same fingerprint, is
        returned as it stands.

        Raises:
            StudiesError: If the numbers leave a gap, or one belongs to another configuration.
            StorageError: If a fingerprint is in the study under another number.
        """

        def work(link: Connection, _: list[TrialRecord] | None) -> list[TrialRecord]:
            keeping.check_epoch(link, study_id, epoch)
            return keeping.add_trials(link, study_id, trials, worker, lease_seconds)

        return self._database.write(work)

    def lease(
        self, study_id: int, epoch: int, number: int, worker: str, lease_seconds: float = LEASE_SECONDS
    ) -> AttemptRecord | None:
        """Give a queued trial to a worker as its next attempt; None, and nothing written, if it is not queued."""
        return self.lease_all(study_id, epoch, [number], worker, lease_seconds)[0]

    def lease_all(
        self, study_id: int, epoch: int, numbers: Sequence[int], worker: str, lease_seconds: float = LEASE_SECONDS
    ) -> list[AttemptRecord | None]:
        """Give queued trials to a worker in one transaction; see `lease`."""

        def work(link: Connection, in_doubt: list[AttemptRecord | None] | None) -> list[AttemptRecord | None]:
            keeping.check_epoch(link, study_id, epoch)
            before = in_doubt or [None] * len(numbers)
            given = (leases.lease(link, study_id, number, worker, lease_seconds) for number in numbers)
            return [new or earlier for new, earlier in zip(given, before, strict=True)]

        return self._database.write(work)

    def renew(self, study_id: int, epoch: int, worker: str, lease_seconds: float = LEASE_SECONDS) -> int:
        """Extend every lease of a worker; returns how many it holds."""

        def work(link: Connection, _: int | None) -> int:
            keeping.check_epoch(link, study_id, epoch)
            return leases.renew(link, study_id, worker, lease_seconds)

        return self._database.write(work)

    def release(self, study_id: int, epoch: int, worker: str, why: str) -> list[int]:
        """Queue every trial that a worker runs, its attempts lost; returns their numbers."""
        return self._take_back(study_id, epoch, lambda link: leases.requeue(link, study_id, worker, why))

    def settle(  # noqa: PLR0913
        self,
        study_id: int,
        epoch: int,
        number: int,
        attempt: int,
        *,
        readings: Sequence[ReadingRecord] = (),
        examples: Sequence[ExampleRecord] = (),
        artefact: ArtefactRecord | None = None,
        outcome: Outcome | None = None,
    ) -> Settlement:
        """Record what a running attempt reports: measurements, a file, its end. All of it or nothing.

        A reading of a step that was measured before is ignored, because the first one stands; so a final score is the
        score of the trial's last reading *in the ledger*. The newest two snapshots of a trial are kept, and none once
        it has ended; a ``delta`` stays. Files are the caller's: it writes one before this call and deletes
        ``dropped_paths`` after it.

        Returns:
            Whether it was accepted: False when the attempt does not run any more (late, or told before).
        """
        entry = Entry(
            number=number, attempt=attempt, readings=readings, examples=examples, artefact=artefact, outcome=outcome
        )
        return self.settle_all(study_id, epoch, [entry])[0]

    def settle_all(self, study_id: int, epoch: int, entries: Sequence[Entry]) -> list[Settlement]:
        """Record what several attempts report, in one transaction: all of it or nothing; see `settle`."""

        def work(link: Connection, in_doubt: list[Settlement] | None) -> list[Settlement]:
            keeping.check_epoch(link, study_id, epoch)
            before: Sequence[Settlement | None] = in_doubt or [None] * len(entries)
            return [
                settling.settle(link, study_id, entry, earlier, home=self.home)
                for entry, earlier in zip(entries, before, strict=True)
            ]

        return self._database.write(work)

    def record_event(
        self, study_id: int, kind: str, text: str, *, trial: int | None = None, epoch: int | None = None
    ) -> None:
        """Record something worth knowing later; ``epoch`` when a keeper says it."""

        def work(link: Connection, _: None) -> None:
            if epoch is not None:
                keeping.check_epoch(link, study_id, epoch)
            keeping.add_event(link, study_id, kind, text, trial)

        self._database.write(work)

    def add_metrics(self, study: StudyRecord, number: int, metrics: Mapping[str, float]) -> None:
        """Record what was measured of a trial after it has ended, in its last reading.

        Raises:
            StudyHeldError: If a launch runs the study.
            WishError: If the trial has no reading, or one has another figure of a name.
        """
        self._database.write(lambda link, _: amending.add_metrics(link, study, number, metrics))

    # Records

    def trial(self, study_id: int, number: int) -> TrialRecord:
        """One trial.

        Raises:
            StudiesError: If the study has no such number.
        """
        return self._database.read(lambda link: looking.trial(link, study_id, number))

    def trials(self, study_id: int, *, states: Collection[TrialState] | None = None) -> list[TrialRecord]:
        """All trials, or those in some states, in the order of their numbers."""
        return self._database.read(lambda link: looking.trials(link, study_id, states))

    def trials_from(self, study_id: int, first: int, end: int) -> list[TrialRecord]:
        """Trials whose numbers are at least ``first`` and below ``end``, in their order."""
        return self._database.read(lambda link: looking.trials_from(link, study_id, first, end))

    def attempts(self, study_id: int, number: int | None = None) -> list[AttemptRecord]:
        """Attempts at one trial or at all, in order."""
        return self._database.read(lambda link: looking.attempts(link, study_id, number))

    def losses(self, study_id: int) -> dict[int, int]:
        """How often trials that are open were lost in a row since their newest reading, by number; 0 is left out."""
        return self._database.read(lambda link: leases.losses(link, study_id))

    def readings(self, study_id: int, number: int | None = None) -> list[ReadingRecord]:
        """Readings of one trial or of all, in the order of their steps."""
        return self._database.read(lambda link: looking.readings(link, study_id, number))

    def readings_by_trial(self, study_id: int) -> dict[int, list[ReadingRecord]]:
        """Readings of all trials that have any, by number of the trial, each in the order of their steps."""
        by_trial: dict[int, list[ReadingRecord]] = {}
        for reading in self.readings(study_id):
            by_trial.setdefault(reading.trial, []).append(reading)
        return by_trial

    def examples(self, study_id: int, number: int | None = None) -> list[ExampleRecord]:
        """What readings of one trial or of all measured example by example, in the order of their steps."""
        return self._database.read(lambda link: looking.examples(link, study_id, number))

    def example_counts(self, study_id: int) -> ExampleCounts | None:
        """How many examples readings measure; None where that was not recorded."""
        return self._database.read(lambda link: looking.example_counts(link, study_id))

    def artefacts(self, study_id: int, number: int | None = None) -> list[ArtefactRecord]:
        """Files of one trial or of all; of each trial the newest last."""
        return self._database.read(lambda link: looking.artefacts(link, study_id, number, self.home))

    def events(self, study_id: int) -> list[EventRecord]:
        """Events of a study, oldest first."""
        return self._database.read(lambda link: looking.events(link, study_id))

    def _take_back(self, study_id: int, epoch: int, take: Callable[[Connection], list[int]]) -> list[int]:
        """Take leases back; what a run in doubt took back counts too."""

        def work(link: Connection, in_doubt: list[int] | None) -> list[int]:
            keeping.check_epoch(link, study_id, epoch)
            return sorted({*take(link), *(in_doubt or ())})

        return self._database.write(work)
