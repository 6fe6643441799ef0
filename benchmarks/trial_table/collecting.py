"""Collects rows with the system itself: portions of the plan are studies of a ledger, whose trials are all given.

A portion is recorded before its first trial begins and trained by the inline backend, so whatever ends the process
loses nothing: the next call continues the portion, and takes the rows that have ended into the table.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from studies.fleet.backend import Observer, RunnerFactory
from studies.keeping.artefacts import study_folder
from studies.keeping.plan import StudyPlan
from studies.launching.beginning import new_study
from studies.launching.preparing import label_count
from studies.launching.running import LaunchResult, Wishes, run_fleet
from studies.search.candidates import new_trial
from studies.search.opening import Opening
from studies.search.proposer import Proposal
from studies.search.rungs import RungPlan
from studies.specification.recorded import BegunSpecification
from studies.store.ledger import Ledger
from studies.store.records import NewTrial, StudyRecord
from trial_table.points import PlannedTrial
from trial_table.rows import TRIALS, Row, example_row, key_of, read_rows, row_of, write_examples, write_rows
from trial_table.setting import CODE, Setting, work_folder

PORTION = 48
"""Rows of a portion; the table is written after each."""

_MACHINE = "machine"
"""Kind of the event that says what a portion was trained on."""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """A table that is being collected.

    Attributes:
        setting: Of the table.
        folder: Where it is.
        facts: The machine's, see `trial_table.rows.row_of`.
        factory: Makes the runner; None trains the task on its backbone.
        portion: Rows of a portion.
        observer: Shown the progress about twice a second.
    """

    setting: Setting
    folder: Path
    facts: Mapping[str, str | None]
    factory: RunnerFactory | None = None
    portion: int = PORTION
    observer: Observer | None = None

    def collect(self, plan: Sequence[PlannedTrial], *, seconds: float, everything: Sequence[PlannedTrial] = ()) -> bool:
        """Train rows in the order of the plan that nobody has yet; returns whether none is left.

        Args:
            plan: The rows to do.
            seconds: After so long the trial in hand is laid aside.
            everything: All rows of the table, to name those of an earlier call; the plan's are known.
        """
        ends_at = time.monotonic() + seconds
        self.work.mkdir(parents=True, exist_ok=True)
        known = {row.key: row for row in (*everything, *plan)}
        self.keep(known)
        with Ledger.open(self.storage_url) as ledger:
            labels = 0 if self.factory is not None else label_count(self.setting.specification)
            while (left := ends_at - time.monotonic()) > 0:
                study = self._unfinished(ledger) or self._begin(ledger, plan, labels)
                if study is None:
                    return True
                result = self._run(ledger, study, left)
                self.keep(known)
                if not result.finished:
                    return False
                shutil.rmtree(study_folder(self.setting.specification.artefact_folder(), study))
        return False

    @property
    def work(self) -> Path:
        return work_folder(self.folder)

    @property
    def storage_url(self) -> str:
        return f"sqlite:///{self.work / 'ledger.db'}"

    def keep(self, known: Mapping[str, PlannedTrial]) -> None:
        """Take the rows of the ledger that have ended into the table."""
        if not (self.work / "ledger.db").is_file():
            return
        with Ledger.open(self.storage_url) as ledger:
            write_rows(self.folder, [*read_rows(self.folder / TRIALS), *self._ended(ledger, known)])
            write_examples(self.folder, self._examples(ledger))

    def _ended(self, ledger: Ledger, known: Mapping[str, PlannedTrial]) -> Iterator[Row]:
        for study in self._studies(ledger):
            told = [event for event in ledger.events(study.id) if event.kind == _MACHINE]
            readings = ledger.readings_by_trial(study.id)
            for trial in ledger.trials(study.id):
                if trial.ended_at is not None:
                    earlier = [event.text for event in told if event.at <= trial.ended_at]
                    facts = json.loads(earlier[-1]) if earlier else {}
                    plan = known.get(key_of(trial, self.setting))
                    own = readings.get(trial.number, [])
                    yield row_of(trial, own, setting=self.setting, plan=plan, facts=facts)

    def _examples(self, ledger: Ledger) -> Iterator[Row]:
        """What was measured example by example."""
        for study in self._studies(ledger):
            keys = {trial.number: key_of(trial, self.setting) for trial in ledger.trials(study.id)}
            for record in ledger.examples(study.id):
                yield example_row(record, keys[record.trial])

    def _studies(self, ledger: Ledger) -> list[StudyRecord]:
        """The portions of this task and this code."""
        return [study for study in ledger.studies() if study.name.startswith(f"{self.setting.task}-{CODE}-")]

    def _unfinished(self, ledger: Ledger) -> StudyRecord | None:
        for study in self._studies(ledger):
            if not all(state.is_terminal or not count for state, count in ledger.state_counts(study.id).items()):
                return study
        return None

    def _begin(self, ledger: Ledger, plan: Sequence[PlannedTrial], labels: int) -> StudyRecord | None:
        """The next rows of the plan as a portion; None if all are there."""
        there = {row["key"] for row in read_rows(self.folder / TRIALS)}
        missing = [row for row in plan if row.key not in there][: self.portion]
        if not missing:
            return None
        space = self.setting.space
        name = f"{self.setting.task}-{CODE}-{missing[0].key[:12]}"
        specification = self.setting.specification.model_copy(update={"name": name, "trials": len(missing)})
        head = labels * (space.shape.width + 1)
        trials = [self._trial(number, row, head) for number, row in enumerate(missing)]
        return ledger.create_study(new_study(BegunSpecification.of(specification), space.shape), trials)

    def _trial(self, number: int, row: PlannedTrial, head_parameters: int) -> NewTrial:
        proposal = Proposal(number=number, candidate=row.candidate)
        trial = new_trial(proposal, self.setting.space.shape, study_seed=0, head_parameters=head_parameters)
        return replace(trial, seed=row.seed, fingerprint=f"{trial.fingerprint}:{row.seed}")

    def _run(self, ledger: Ledger, study: StudyRecord, seconds: float) -> LaunchResult:
        ledger.record_event(study.id, _MACHINE, json.dumps(dict(self.facts)))
        begun_with = BegunSpecification.from_json(study.specification)
        fleet = self.setting.specification.fleet.model_copy(update={"time_budget": seconds})
        plan = StudyPlan(
            study=study.name,
            storage_url=self.storage_url,
            target_trials=begun_with.trials,
            space=self.setting.space,
            sampler="random",
            opening=Opening(),
            seed=0,
            training=self.setting.training,
            head_parameters=0,
            rungs=RungPlan(steps=(), reduction=1),
            artefacts=study_folder(self.setting.specification.artefact_folder(), study),
        )
        specification = begun_with.model_copy(update={"fleet": fleet})
        return run_fleet(specification, study, plan, Wishes(factory=self.factory, observer=self.observer))


def machine_facts(precision: str, commit: str | None) -> dict[str, str | None]:
    """What a row says of where it was trained."""
    from accelerate import PartialState
    from torch import cuda

    from trial_runner.runner import chosen_precision

    place = PartialState().device
    name = cuda.get_device_name(place) if place.type == "cuda" else _processor()
    return {"commit": commit, "precision": chosen_precision(precision, place), "machine": name}


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "CPU"
