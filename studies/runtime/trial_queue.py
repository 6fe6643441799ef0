"""The next trials of a study: what waits, what the search proposes, and towards the end replicates of its finalists."""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from studies.analysis.ranks import ranking_of
from studies.errors import LaunchError
from studies.ledger.files import is_own_file
from studies.records import ArtefactRecord, EventKind, TrialRecord, TrialState
from studies.runtime.replicates import ReplicateRound, finalists_of, replicate, round_of, rounds
from studies.runtime.roster import OpenTrial
from studies.runtime.state import StudyState
from studies.search.candidates import new_trial, trial_request
from studies.search.proposer import SpaceExhausted
from trial_runner.requests import TrialRequest

AHEAD_PER = 16
"""One trial is proposed ahead of need for so many that run: it knows little less than those that are proposed later."""


class TrialQueue:
    """Lends trials to workers: queued ones first, then new ones.

    Attributes:
        exhausted: Why nothing more can be proposed; empty while something can.
    """

    def __init__(self, state: StudyState) -> None:
        """Begin with nothing taken."""
        self.exhausted = ""
        self._state = state
        self._plan = plan = state.plan
        self._proposer = state.proposer
        # a study of nothing but published methods has no finalists
        self._rounds = rounds(plan.replicates if plan.space.trees else 0, target_trials=plan.target_trials)
        self._finalists: dict[int, tuple[TrialRecord, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no trial will begin that has not begun."""
        return self._proposer.next_number >= self._plan.target_trials or bool(self.exhausted)

    def prepare(self) -> bool:
        """Propose a trial that waits for a worker, so that no worker waits for it; False if it is not the time.

        It is recorded at once and proposed from what is known then, so it need not be taken back, whatever is reported
        until it is lent, and a takeover finds it.
        """
        state, roster = self._state, self._state.roster
        waiting = len(roster.queued())
        if waiting >= (len(roster.trials) - waiting) // AHEAD_PER:
            return False
        new = self._take(1, before=roster.trials)
        for trial in new:
            state.ledger.add_trials(state.study.id, state.epoch, [trial])
            roster.trials[trial.number] = OpenTrial(trial=trial, attempt=0)
            state.move(None, TrialState.QUEUED)
        return bool(new)

    def lend(self, worker: str, slots: int) -> Iterator[TrialRequest]:
        """At most ``slots`` trials: queued ones first, then new ones. A suspect is lent alone."""
        state, roster = self._state, self._state.roster
        if any(open_trial.is_suspect for open_trial in roster.held_by(worker)):
            return
        to_propose = max(0, self._plan.target_trials - self._proposer.next_number)
        slots = min(slots, roster.share(len(roster.queued()) + to_propose))
        queued = roster.to_lend(worker, slots)
        yield from self._lend_again(worker, queued)
        if any(roster.trials[number].is_suspect for number in queued):
            return
        new = self._take(slots - len(queued), before=roster.trials)
        if new:
            state.pace.begin(time.monotonic())
            seconds = self._plan.lease_seconds
            state.ledger.add_trials(state.study.id, state.epoch, new, worker=worker, lease_seconds=seconds)
        for trial in new:
            roster.trials[trial.number] = OpenTrial(trial=trial, attempt=1, worker=worker)
            state.move(None, TrialState.RUNNING)
            yield trial_request(trial, attempt=1, plan=self._plan.training)

    def _lend_again(self, worker: str, numbers: Sequence[int]) -> Iterator[TrialRequest]:
        if not numbers:
            return
        state, seconds = self._state, self._plan.lease_seconds
        state.pace.begin(time.monotonic())
        attempts = state.ledger.lease_all(state.study.id, state.epoch, numbers, worker, seconds)
        for number, attempt in zip(numbers, attempts, strict=True):
            if attempt is None:
                raise LaunchError(f"the ledger must have trial {number} queued; it does not.")
            open_trial = state.roster.trials[number]
            open_trial.attempt, open_trial.worker = attempt.attempt, worker
            state.move(TrialState.QUEUED, TrialState.RUNNING)
            yield trial_request(open_trial.trial, attempt=attempt.attempt, plan=self._plan.training)

    def snapshots(self, requests: Iterable[TrialRequest]) -> tuple[ArtefactRecord, ...]:
        """What earlier attempts at trials have left, of each the newest first."""
        study, ledger = self._state.study, self._state.ledger
        again = (request.trial for request in requests if request.attempt > 1)
        kept = (one for trial in again for one in ledger.artefacts(study.id, trial) if one.kind == "snapshot")
        return tuple(sorted((one for one in kept if is_own_file(study, one.path)), key=lambda one: -one.step))

    def _take(self, count: int, *, before: Collection[int]) -> list[TrialRecord]:
        """At most so many new trials; fewer where the next ones must wait for trials that have not ended.

        Args:
            count: Most of them.
            before: Numbers of the trials that have not ended.
        """
        found: list[TrialRecord] = []
        while len(found) < count and self._proposer.next_number < self._plan.target_trials and not self.exhausted:
            one = None if self._proposer.is_initial_design else round_of(self._proposer.next_number, self._rounds)
            open_trials = chain(before, (trial.number for trial in found))
            if one is not None and any(number < one.begins_at for number in open_trials):
                break
            again = None if one is None else self._replicate(one)
            trial = self._proposed() if again is None else again
            if trial is not None:
                found.append(trial)
        return found

    def _replicate(self, one: ReplicateRound) -> TrialRecord | None:
        """The next trial of a round whose time has come; None if there is nothing to train again."""
        if one.begins_at not in self._finalists:
            before = self._state.ledger.trials(self._state.study.id)[: one.begins_at]
            ranked = ranking_of(self._state.ledger, self._state.study, before).trials
            complete = [before[each.number] for each in ranked if each.state is TrialState.COMPLETE]
            self._finalists[one.begins_at] = finalists_of(one, complete)
        finalists = self._finalists[one.begins_at]
        trial = replicate(self._proposer.next_number, one, finalists, study_seed=self._plan.seed)
        if trial is not None:
            self._proposer.add_replicate(trial)
        return trial

    def _proposed(self) -> TrialRecord | None:
        """What the search proposes next; None if it is exhausted."""
        plan, left_out, number = self._plan, set(self._proposer.left_out), self._proposer.next_number
        candidate = None
        try:
            candidate = self._proposer.propose()
        except SpaceExhausted as reason:
            self.exhausted = str(reason)
            self._state.record_event(EventKind.EXHAUSTED, self.exhausted)
        for method in set(self._proposer.left_out) - left_out:
            self._state.record_event(EventKind.LEFT_OUT, f"{method}: {self._proposer.left_out[method]}")
        if candidate is None:
            return None
        seed, heads = plan.seed, plan.head_parameters
        return new_trial(candidate, plan.space.shape, number=number, study_seed=seed, head_parameters=heads)
