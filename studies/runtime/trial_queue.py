"""Next trials of a study: queued ones, proposals of the search, and replicates of the finalists at the end."""

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
"""Number of running trials per trial proposed ahead of need; it is proposed from slightly less data than later ones."""


class TrialQueue:
    """Leases of trials to workers: queued ones first, then new ones.

    Attributes:
        exhausted: Reason why nothing more can be proposed; empty while something can.
    """

    def __init__(self, state: StudyState) -> None:
        """Start without leases."""
        self.exhausted = ""
        self._state = state
        self._plan = plan = state.plan
        self._proposer = state.proposer
        # a study of published methods alone has no finalists
        self._rounds = rounds(plan.replicates if plan.space.trees else 0, target_trials=plan.target_trials)
        self._finalists: dict[int, tuple[TrialRecord, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether all trials have begun."""
        return self._proposer.next_number >= self._plan.target_trials or bool(self.exhausted)

    def prepare(self) -> bool:
        """Propose a trial ahead of need, so that no worker waits for it; return False if it is too early.

        It is recorded at once from the data of that moment, so later reports do not invalidate it, and a takeover
        finds it.
        """
        state, roster = self._state, self._state.roster
        waiting = len(roster.queued())
        if waiting >= (len(roster.trials) - waiting) // AHEAD_PER:
            return False
        new = self._take(1, before=roster.trials)
        for trial in new:
            state.ledger.add_trials(state.study.id, state.epoch, [trial])
            roster.trials[trial.number] = OpenTrial(trial=trial, attempt=0)
            state.count_transition(None, TrialState.QUEUED)
        return bool(new)

    def lease(self, worker: str, slots: int) -> Iterator[TrialRequest]:
        """Lease at most ``slots`` trials: queued ones first, then new ones. A suspect is leased alone."""
        state, roster = self._state, self._state.roster
        if any(open_trial.is_suspect for open_trial in roster.held_by(worker)):
            return
        to_propose = max(0, self._plan.target_trials - self._proposer.next_number)
        slots = min(slots, roster.fair_share(len(roster.queued()) + to_propose))
        queued = roster.choose_queued(worker, slots)
        yield from self._lease_queued(worker, queued)
        if any(roster.trials[number].is_suspect for number in queued):
            return
        new = self._take(slots - len(queued), before=roster.trials)
        if new:
            state.pace.begin(state.clock())
            seconds = self._plan.lease_seconds
            state.ledger.add_trials(state.study.id, state.epoch, new, worker=worker, lease_seconds=seconds)
        for trial in new:
            roster.trials[trial.number] = OpenTrial(trial=trial, attempt=1, worker=worker)
            state.count_transition(None, TrialState.RUNNING)
            yield trial_request(trial, attempt=1, plan=self._plan.training)

    def _lease_queued(self, worker: str, numbers: Sequence[int]) -> Iterator[TrialRequest]:
        if not numbers:
            return
        state, seconds = self._state, self._plan.lease_seconds
        state.pace.begin(state.clock())
        attempts = state.ledger.lease_all(state.study.id, state.epoch, numbers, worker, seconds)
        for number, attempt in zip(numbers, attempts, strict=True):
            if attempt is None:
                raise LaunchError(f"trial {number} must be queued in the ledger; it is not. Run 'deltaspace verify'.")
            open_trial = state.roster.trials[number]
            open_trial.attempt, open_trial.worker = attempt.attempt, worker
            state.count_transition(TrialState.QUEUED, TrialState.RUNNING)
            yield trial_request(open_trial.trial, attempt=attempt.attempt, plan=self._plan.training)

    def snapshots(self, requests: Iterable[TrialRequest]) -> tuple[ArtefactRecord, ...]:
        """Return the snapshots of earlier attempts at the trials, the newest of each first."""
        study, ledger = self._state.study, self._state.ledger
        retried = (request.trial for request in requests if request.attempt > 1)
        kept = (one for trial in retried for one in ledger.artefacts(study.id, trial) if one.kind == "snapshot")
        return tuple(sorted((one for one in kept if is_own_file(study, one.path)), key=lambda one: -one.step))

    def _take(self, count: int, *, before: Collection[int]) -> list[TrialRecord]:
        """Return at most ``count`` new trials, fewer where a round of replicates must wait for open trials.

        Args:
            count: Largest number of trials.
            before: Numbers of the open trials.
        """
        trials: list[TrialRecord] = []
        while len(trials) < count and self._proposer.next_number < self._plan.target_trials and not self.exhausted:
            one = None if self._proposer.is_initial_design else round_of(self._proposer.next_number, self._rounds)
            open_trials = chain(before, (trial.number for trial in trials))
            if one is not None and any(number < one.begins_at for number in open_trials):
                break
            replicate_trial = None if one is None else self._replicate(one)
            trial = self._proposed() if replicate_trial is None else replicate_trial
            if trial is not None:
                trials.append(trial)
        return trials

    def _replicate(self, one: ReplicateRound) -> TrialRecord | None:
        """Return the next trial of a round that may begin; None without finalists."""
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
        """Return the next proposal of the search; None if it is exhausted."""
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
