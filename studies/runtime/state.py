"""State of a study in its keeper, in memory; rebuilt from the ledger at every takeover."""

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
from studies.runtime.progress import Clock, Pace, Progress
from studies.runtime.roster import MAX_LOSSES, OpenTrial, Roster, open_trial_of
from studies.runtime.study_plan import StudyPlan
from studies.runtime.tally import build_tally
from studies.search.proposer import Proposer
from studies.search.samplers import sampler_of
from studies.surrogate.recorded_observations import ObservationModel
from trial_runner.tasks.metrics.classes import ACCURACY


def replay(proposer: Proposer, trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]]) -> None:
    """Load the history of a ledger into a new proposer; readings are by trial number.

    Raises:
        DamagedError: If a trial's proposal cannot be one of the space.
    """
    parameters = proposer.space.parameters()
    for trial in trials:
        for name, value in trial.proposal.items() if trial.method is None else ():
            if not _is_answer(parameters.get(name), value):
                error = ValueError(f"trial {trial.number} has '{name}' = {value!r}")
                raise DamagedError.of("proposals of the study's space", error)
    proposer.replay(trials, readings)


def _is_answer(parameter: Parameter | None, value: object) -> bool:
    """Return whether a value can be the proposed value of a parameter."""
    return (
        value in parameter if isinstance(parameter, tuple) else parameter is not None and isinstance(value, int | float)
    )


class StudyState:
    """State of a study that was taken over, with its ledger.

    Attributes:
        plan: Plan of the study.
        clock: Monotonic clock, in seconds.
        ledger: Ledger of the study.
        study: Record of the study at the takeover.
        epoch: Epoch of this keeper's writes.
        proposer: Proposer with the whole history.
        rungs: Readings at rungs.
        roster: Open trials and workers.
        tally: Ended trials.
        counts: Number of trials by state.
        pace: Estimate of the remaining time.
        crashes: Worker crashes in a row since the last reading.
    """

    def __init__(self, plan: StudyPlan, *, name: str, patience: Patience | None, clock: Clock = time.monotonic) -> None:
        """Take the study over: fence earlier keepers, requeue their running trials, read the ledger.

        Raises:
            StudiesError: If the study or its storage is missing.
        """
        self.plan = plan
        self.clock = clock
        self.ledger = Ledger.open(plan.storage_url, create=False, patience=patience)
        self.study: StudyRecord = self.ledger.study(plan.study)
        self.epoch = self.ledger.take_over(self.study.id, name)
        self.ledger.place(self.study.id, self.epoch, plan.artefacts)
        self.pace = Pace()
        self.roster = Roster()
        self.counts = dict.fromkeys(TrialState, 0)
        self.crashes = 0
        self._refused: set[Path] = set()
        self._began_at = clock()
        self.delete(self._fail_lost_trials())
        self.ledger.release(self.study.id, self.epoch, None, "its keeper was replaced")
        self._rebuild()
        self.sweep()

    def _fail_lost_trials(self) -> list[str]:
        """End the running trials for which the end of their launch is one loss too many.

        Returns:
            Files that no record names any more.
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
                self.roster.trials[trial.number] = open_trial_of(trial, known, losses.get(trial.number, 0))
        self.tally = build_tally(plan, trials, by_trial)

    def record_event(self, kind: EventKind, text: str) -> None:
        """Record an event."""
        self.ledger.record_event(self.study.id, kind, text, epoch=self.epoch)

    def sweep(self) -> None:
        """Remove unrecorded files."""
        ended = [one for one in self.ledger.attempts(self.study.id) if one.ended_at is not None]
        self._record_undeletable(remove_orphans(self.plan.artefacts, self.ledger.artefacts(self.study.id), ended))

    def delete(self, paths: Collection[str]) -> None:
        """Delete files of the study."""
        self._record_undeletable(delete_own_files(self.study, paths))

    def _record_undeletable(self, refused: Mapping[Path, str]) -> None:
        """Record once which files cannot be deleted; every sweep tries them again."""
        for path, why in refused.items():
            if path not in self._refused:
                self._refused.add(path)
                self.record_event(EventKind.UNDELETED, f"{path} cannot be deleted: {why}")

    def size(self, trial: TrialRecord) -> float:
        """Return the size of a trial by the size goal; 0 without one."""
        return 0.0 if self.plan.goal is None else self.plan.goal.size(trial)

    def count_transition(self, before: TrialState | None, after: TrialState) -> None:
        """Update the counts for a trial that changes its state."""
        if before is not None:
            self.counts[before] -= 1
        self.counts[after] += 1

    def queue(self, held: Sequence[OpenTrial]) -> None:
        """Requeue trials for another worker."""
        for open_trial in held:
            open_trial.worker = None
            self.count_transition(TrialState.RUNNING, TrialState.QUEUED)

    def progress(self, *, is_exhausted: bool) -> Progress:
        """Return the progress of the study.

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
            course=self.tally.improvements,
            just_ended=self.tally.just_ended,
            ended_here=self.tally.ended_here,
            head_only=self.tally.head_only,
            constant=self.tally.constant,
            examples=self.plan.rungs.example_counts if self.study.metric == ACCURACY.name else None,
            budget_parameters=self.study.budget_parameters,
            seconds_elapsed=self.clock() - self._began_at,
            left=self.pace.left(self.clock(), self._steps_left(is_exhausted=is_exhausted)),
            running=tuple(one.as_progress() for _, one in sorted(self.roster.trials.items()) if one.worker is not None),
        )

    def _steps_left(self, *, is_exhausted: bool) -> float:
        """Return the expected remaining steps: open ones run to the end, later ones as far as the ended ones."""
        steps = self.plan.training.steps
        to_come = 0 if is_exhausted else max(0, self.plan.target_trials - sum(self.counts.values()))
        return sum(steps - one.step for one in self.roster.trials.values()) + to_come * self.tally.expected_steps


def loss_reason(losses: int, why: str) -> str:
    """Return the reason why a trial that was lost too often failed."""
    return f"lost {losses} times in a row without a reading; the last: {why}"
