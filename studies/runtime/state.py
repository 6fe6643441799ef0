"""What a keeper knows of its study: in memory, rebuilt from the ledger at every takeover."""

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from search_space.space.trial_protocol import Parameter
from studies.errors import DamagedError
from studies.ledger.database import Patience
from studies.ledger.ledger import Ledger
from studies.pruning.rungs import Rule, RungBoard
from studies.records import EventKind, Reading, StudyRecord, TrialRecord, TrialState
from studies.runtime.artefacts import delete_own_files, remove_orphans
from studies.runtime.progress import Pace, Progress
from studies.runtime.roster import MAX_LOSSES, OpenTrial, Roster, recalled
from studies.runtime.study_plan import StudyPlan
from studies.runtime.tally import tally_of
from studies.search.proposer import Proposer
from studies.search.samplers import sampler_of
from studies.surrogate.recorded_observations import ObservationModel
from trial_runner.tasks.metrics.classes import ACCURACY


def replay(proposer: Proposer, trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]]) -> None:
    """Tell a new proposer what a ledger holds; readings by number of the trial.

    Raises:
        DamagedError: If a trial's proposal cannot be one of the space.
    """
    parameters = proposer.space.parameters()
    for trial in trials:
        for name, value in trial.proposal.items() if trial.method is None else ():
            if not _is_answer(parameters.get(name), value):
                strange = ValueError(f"trial {trial.number} has '{name}' = {value!r}")
                raise DamagedError.of("proposals of the study's space", strange)
    proposer.replay(trials, readings)


def _is_answer(asked: Parameter | None, value: object) -> bool:
    """Whether a value can be what a trial was given for a parameter."""
    return value in asked if isinstance(asked, tuple) else asked is not None and isinstance(value, int | float)


class StudyState:
    """A study that was taken over, with its ledger.

    Attributes:
        plan: How it is searched.
        ledger: Where it is.
        study: The study, as it was when it was taken over.
        epoch: Under which this keeper writes.
        proposer: Told of all that is in the ledger.
        rungs: Where trials are compared.
        roster: The open trials and the workers.
        tally: Of what has ended.
        counts: Trials per state.
        pace: How fast steps are made.
        crashes: Of workers in a row, since a trial has got further.
    """

    def __init__(self, plan: StudyPlan, *, name: str, patience: Patience | None) -> None:
        """Take the study over: fence earlier keepers, queue what they had running, read what they knew.

        Raises:
            StudiesError: If the study or its storage is not there.
        """
        self.plan = plan
        self.ledger = Ledger.open(plan.storage_url, create=False, patience=patience)
        self.study: StudyRecord = self.ledger.study(plan.study)
        self.epoch = self.ledger.take_over(self.study.id, name)
        self.ledger.place(self.study.id, self.epoch, plan.artefacts)
        self.pace = Pace()
        self.roster = Roster()
        self.counts = dict.fromkeys(TrialState, 0)
        self.crashes = 0
        self._refused: set[Path] = set()
        self._began_at = time.monotonic()
        self.delete(self._fail_the_lost())
        self.ledger.release(self.study.id, self.epoch, None, "its keeper was replaced")
        self._rebuild()
        self.sweep()

    def _fail_the_lost(self) -> list[str]:
        """End the running trials for which the end of the launch that ran them is one loss too many.

        Returns:
            The files that no record names any more.
        """
        before = self.ledger.losses(self.study.id)
        dropped: list[str] = []
        for trial in self.ledger.trials(self.study.id, states=[TrialState.RUNNING]):
            if (losses := before.get(trial.number, 0) + 1) >= MAX_LOSSES:
                reason = loss_reason(losses, "its launch ended with it")
                key = (self.study.id, self.epoch, trial.number, trial.attempt)
                dropped += self.ledger.settle(*key, state=TrialState.FAILED, reason=reason) or ()
        return dropped

    def _rebuild(self) -> None:
        """Read the ledger into memory."""
        trials = self.ledger.trials(self.study.id)
        by_trial = self.ledger.readings_by_trial(self.study.id)
        plan = self.plan
        self.proposer = Proposer(
            plan.space,
            sampler=sampler_of(plan.sampler),
            seed=plan.seed,
            initial_design=plan.initial_design,
            model=ObservationModel(
                steps=plan.training.steps,
                examples=plan.rungs.examples,
                rung_examples=plan.rungs.rung_examples,
                goal=plan.goal,
            ),
        )
        replay(self.proposer, trials, by_trial)
        self.rungs = RungBoard(plan.rungs)
        if plan.rungs.rule is Rule.SIGNIFICANCE:
            for examples in self.ledger.examples(self.study.id):
                self.rungs.remember(examples.trial, examples.step, examples)
        losses = self.ledger.losses(self.study.id)
        for trial in trials:
            known = by_trial.get(trial.number, ())
            for reading in known if trial.replicate_of is None else ():
                self.rungs.add(reading, trial, size=self.size(trial))
            self.counts[trial.state] += 1
            if not trial.state.is_terminal:
                self.roster.trials[trial.number] = recalled(trial, known, losses.get(trial.number, 0))
        self.tally = tally_of(plan, trials, by_trial)

    def record_event(self, kind: EventKind, text: str) -> None:
        """Note something worth knowing later."""
        self.ledger.record_event(self.study.id, kind, text, epoch=self.epoch)

    def sweep(self) -> None:
        """Leave no file behind that belongs to nothing."""
        ended = [one for one in self.ledger.attempts(self.study.id) if one.ended_at is not None]
        self._tell_refused(remove_orphans(self.plan.artefacts, self.ledger.artefacts(self.study.id), ended))

    def delete(self, paths: Collection[str]) -> None:
        """Delete files of the study."""
        self._tell_refused(delete_own_files(self.study, paths))

    def _tell_refused(self, refused: Mapping[Path, str]) -> None:
        """Note once which files cannot be deleted; every sweep tries them again."""
        for path, why in refused.items():
            if path not in self._refused:
                self._refused.add(path)
                self.record_event(EventKind.UNDELETED, f"{path} cannot be deleted: {why}")

    def size(self, trial: TrialRecord) -> float:
        """What of a trial is to be small; 0 where only the score counts."""
        return 0.0 if self.plan.goal is None else self.plan.goal.size(trial)

    def move(self, before: TrialState | None, after: TrialState) -> None:
        """Count a trial in another state."""
        if before is not None:
            self.counts[before] -= 1
        self.counts[after] += 1

    def queue(self, held: Sequence[OpenTrial]) -> None:
        """Let trials wait for another worker."""
        for open_trial in held:
            open_trial.worker = None
            self.move(TrialState.RUNNING, TrialState.QUEUED)

    def progress(self, *, is_exhausted: bool) -> Progress:
        """The study as it is now.

        Args:
            is_exhausted: Whether nothing more can be proposed.
        """
        return Progress(
            study=self.study.name,
            metric=self.study.metric,
            counts=dict(self.counts),
            target_trials=self.plan.target_trials,
            steps=self.plan.training.steps,
            top=self.tally.top,
            course=self.tally.course,
            just_ended=self.tally.just_ended,
            ended_here=self.tally.ended_here,
            head_only=self.tally.head_only,
            constant=self.tally.constant,
            examples=self.plan.rungs.example_counts if self.study.metric == ACCURACY.name else None,
            budget_parameters=self.study.budget_parameters,
            seconds_elapsed=time.monotonic() - self._began_at,
            left=self.pace.left(time.monotonic(), self._steps_left(is_exhausted=is_exhausted)),
            running=tuple(one.shown() for _, one in sorted(self.roster.trials.items()) if one.worker is not None),
        )

    def _steps_left(self, *, is_exhausted: bool) -> float:
        """Of the trials that have not ended: open ones are taken to run to the end, others as far as those before."""
        steps = self.plan.training.steps
        to_come = 0 if is_exhausted else max(0, self.plan.target_trials - sum(self.counts.values()))
        return sum(steps - one.step for one in self.roster.trials.values()) + to_come * self.tally.expected_steps


def loss_reason(losses: int, why: str) -> str:
    """Why a trial has failed that was lost too often."""
    return f"lost {losses} times in a row without a reading; the last: {why}"
