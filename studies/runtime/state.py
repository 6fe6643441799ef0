"""State of a study in its keeper, in memory; rebuilt from the ledger at every takeover."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from search_space.space.space import SearchSpace
from search_space.space.trial_protocol import Parameter
from studies.errors import DamagedError
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.ledger.ledger import Ledger
from studies.records import EventKind, StudyRecord, TrialRecord, TrialState
from studies.runtime.artefacts import delete_own_files, remove_orphans
from studies.runtime.progress import Clock, Pace, Progress
from studies.runtime.roster import MAX_LOSSES, Lease, Roster
from studies.runtime.study_plan import StudyPlan
from studies.runtime.summary import EndedTrials, trial_progress
from studies.search.proposer import Proposer
from studies.search.samplers import sampler_of
from trial_runner.tasks.metrics.classes import ACCURACY


def check_proposals(space: SearchSpace, trials: Iterable[TrialRecord]) -> None:
    """Check that recorded proposals can be those of a space.

    Raises:
        DamagedError: If one cannot.
    """
    parameters = space.parameters()
    for trial in trials:
        for name, value in trial.proposal.items() if trial.method is None else ():
            if not _is_answer(parameters.get(name), value):
                error = ValueError(f"trial {trial.number} has '{name}' = {value!r}")
                raise DamagedError.of("proposals of the study's space", error)


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
        history: Past of the study; equal to that of the ledger between two calls.
        proposer: Proposals of the study.
        roster: Leases and workers.
        pace: Estimate of the remaining time.
        crashes: Worker crashes in a row since the last reading.
    """

    def __init__(self, plan: StudyPlan, ledger: Ledger, *, name: str, clock: Clock = time.monotonic) -> None:
        """Take the study over: fence earlier keepers, requeue their running trials, read the ledger.

        Raises:
            StudiesError: If the study is missing.
        """
        self.plan = plan
        self.clock = clock
        self.ledger = ledger
        self.study: StudyRecord = self.ledger.study(plan.study)
        self.epoch = self.ledger.take_over(self.study.id, name)
        self.ledger.place(self.study.id, self.epoch, plan.artefacts)
        self.pace = Pace()
        self.roster = Roster()
        self.crashes = 0
        self._refused: set[Path] = set()
        self._began_at = clock()
        self.delete(self._fail_lost_trials())
        self.ledger.release(self.study.id, self.epoch, None, "its keeper was replaced")
        self.history = self._recorded()
        self._ended_before = sum(trial.state.is_terminal for trial in self.history)
        losses = self.ledger.losses(self.study.id)
        self.roster.leases = {
            one.number: Lease(trial=one.number, attempt=one.attempt, losses=losses.get(one.number, 0))
            for one in self.history
            if not one.state.is_terminal
        }
        self.proposer = Proposer(
            plan.space,
            sampler=sampler_of(plan.sampler),
            seed=plan.seed,
            initial_design=plan.initial_design,
            goal=plan.goal,
        )
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

    def _recorded(self) -> StudyHistory:
        """Return the history in the ledger.

        Raises:
            DamagedError: If a trial's proposal cannot be one of the space.
        """
        rungs = self.plan.rungs
        noise = ScoreNoise(steps=self.plan.training.steps, examples=rungs.examples, rung_examples=rungs.rung_examples)
        history = self.ledger.history(self.study.id, noise)
        check_proposals(self.plan.space, history)
        return history

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

    def queue(self, held: Sequence[Lease]) -> None:
        """Requeue trials for another worker."""
        for lease in held:
            lease.worker = None
            self.history = self.history.changed(lease.trial, state=TrialState.QUEUED)

    def progress(self, *, is_exhausted: bool) -> Progress:
        """Return the progress of the study.

        Args:
            is_exhausted: Whether nothing more can be proposed.
        """
        has_best = self.plan.training.measured_split == "validation"
        history, ended = self.history, EndedTrials.of(self.history, has_best=has_best)
        leases = sorted(self.roster.leases.items())
        return Progress(
            study=self.study.name,
            metric=self.study.metric,
            counts=history.counts,
            target_trials=self.plan.target_trials,
            steps=self.plan.training.steps,
            top=tuple(ended.best_trials(history)),
            improvements=ended.rises,
            just_ended=tuple(ended.last(history)),
            ended_here=len(ended.trials) - self._ended_before,
            head_only=ended.head_only,
            constant=self.plan.constant_score,
            examples=self.plan.rungs.example_counts if self.study.metric == ACCURACY.name else None,
            budget_parameters=self.study.budget_parameters,
            seconds_elapsed=self.clock() - self._began_at,
            left=self.pace.left(self.clock(), self._steps_left(ended, is_exhausted=is_exhausted)),
            running=tuple(
                trial_progress(history[number], history, lease.worker)
                for number, lease in leases
                if lease.worker is not None
            ),
        )

    def _steps_left(self, ended: EndedTrials, *, is_exhausted: bool) -> float:
        """Return the expected remaining steps: open ones run to the end, later ones as far as the ended ones."""
        steps = self.plan.training.steps
        to_come = 0 if is_exhausted else max(0, self.plan.target_trials - len(self.history))
        open_steps = sum(steps - self.history[number].steps for number in self.roster.leases)
        return open_steps + to_come * ended.expected_steps(steps)


def loss_reason(losses: int, why: str) -> str:
    """Return the reason why a trial that was lost too often failed."""
    return f"lost {losses} times in a row without a reading; the last: {why}"
