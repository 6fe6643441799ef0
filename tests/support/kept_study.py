"""Study with its keeper, and messages of its workers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from support.violations import violations

from studies.history.history import StudyHistory
from studies.ledger.ledger import Ledger
from studies.records import ArtefactRecord, TrialRecord, TrialReport
from studies.runtime.artefacts import attempt_folder, describe_file
from studies.runtime.keeper import StudyKeeper
from studies.runtime.messages import Decision
from studies.runtime.study_plan import StudyPlan
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading, TrialRequest


def report(
    request: TrialRequest,
    step: int,
    score: float,
    artefact: ArtefactRecord | None = None,
    examples: ExampleLosses | None = None,
) -> TrialReport:
    measured = {"score": score, "metrics": {"accuracy": score}, "train_loss": 0.5, "seconds": 0.1}
    reading = Reading(trial=request.trial, attempt=request.attempt, step=step, **measured, examples=examples)  # type: ignore[arg-type]
    return TrialReport(trial=request.trial, attempt=request.attempt, reading=reading, artefact=artefact)


def differences(ours: StudyHistory, recorded: StudyHistory) -> list[str]:
    """Return a line for each trial that a keeper holds otherwise than its ledger."""
    entries = zip(ours.entries(), recorded.entries(), strict=False)
    found = [f"trial {one[0].number}: {one} is {other} in the ledger" for one, other in entries if one != other]
    return found if len(ours) == len(recorded) else [*found, f"{len(ours)} trials are {len(recorded)} in the ledger"]


class KeptStudy:
    """A study of the storage.

    Attributes:
        keeper: The newest.
        is_checked: Whether a test ends with what can be.
    """

    def __init__(self, plan: StudyPlan, keep: Callable[[StudyPlan], StudyKeeper]) -> None:
        self.plan, self._keep, self.is_checked = plan, keep, True
        self.keeper = keep(plan)

    def take_over(self) -> None:
        self.keeper = self._keep(self.plan)

    def take(self, count: int, worker: str = "w/1") -> list[TrialRequest]:
        return list(self.keeper.exchange(worker, [], count).requests)

    def tell(self, *reports: TrialReport, worker: str = "w/1") -> list[Decision]:
        return list(self.keeper.exchange(worker, reports, 0).decisions)

    @contextmanager
    def opened(self) -> Iterator[tuple[Ledger, int]]:
        with Ledger.open(self.plan.storage_url) as ledger:
            yield ledger, ledger.study(self.plan.study).id

    @property
    def trials(self) -> list[TrialRecord]:
        with self.opened() as (ledger, key):
            return ledger.trials(key)

    @property
    def states(self) -> list[str]:
        return [trial.state.value for trial in self.trials]

    @property
    def artefacts(self) -> list[ArtefactRecord]:
        with self.opened() as (ledger, key):
            return ledger.artefacts(key)

    @property
    def losses(self) -> dict[int, int]:
        with self.opened() as (ledger, key):
            return ledger.losses(key)

    def event_texts(self, kind: str) -> list[str]:
        """Return the texts of all events of a kind."""
        with self.opened() as (ledger, key):
            return [event.text for event in ledger.events(key) if event.kind == kind]

    def broken(self, now: datetime | None = None) -> list[str]:
        with self.opened() as (ledger, key):
            found = violations(ledger, key, rung_steps=self.plan.rungs.steps, now=now)
            return [*found, *differences(self.keeper.history, ledger.history(key, self.keeper.history.noise))]

    def written(self, request: TrialRequest, step: int) -> ArtefactRecord:
        """Write a snapshot file and return its record."""
        path = attempt_folder(self.plan.artefacts, request.trial, request.attempt) / f"step-{step}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(step))
        return describe_file(path, trial=request.trial, kind="snapshot", step=step)
