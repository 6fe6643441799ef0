"""Next trials of a study: queued ones, proposals of the search, early replicates, and those of the finalists."""

from collections.abc import Iterable, Iterator, Sequence

from search_space.space.space import Candidate
from studies.analysis.ranks import ranking_of
from studies.errors import LaunchError
from studies.history.history import StudyHistory
from studies.ledger.files import is_own_file
from studies.records import ArtefactRecord, EventKind, TrialRecord, TrialState
from studies.runtime.replicates import ReplicateRound, early_original, finalists_of, repeat, replicate, round_of, rounds
from studies.runtime.roster import Lease
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
        # a study of published methods alone has no finalists
        self._rounds = rounds(plan.replicates if plan.space.is_searched else 0, target_trials=plan.target_trials)
        self._finalists: dict[int, tuple[TrialRecord, ...]] = {}
        self._left_out: set[str] = set()

    @property
    def is_empty(self) -> bool:
        """Whether all trials have begun."""
        return len(self._state.history) >= self._plan.target_trials or bool(self.exhausted)

    def prepare(self) -> bool:
        """Propose a trial ahead of need, so that no worker waits for it; return False if it is too early.

        It is recorded at once from the data of that moment, so later reports do not invalidate it, and a takeover
        finds it.
        """
        roster = self._state.roster
        waiting = len(roster.queued())
        if waiting >= (len(roster.leases) - waiting) // AHEAD_PER:
            return False
        return bool(self._add(self._take(1)))

    def _add(self, new: Sequence[TrialRecord], worker: str | None = None) -> list[TrialRecord]:
        """Record new trials, queued or as the first attempt of a worker."""
        state, seconds = self._state, self._plan.lease_seconds
        recorded = state.ledger.add_trials(state.study.id, state.epoch, new, worker=worker, lease_seconds=seconds)
        state.history = state.history.added(recorded)
        for trial in recorded:
            state.roster.leases[trial.number] = Lease(trial=trial.number, attempt=trial.attempt, worker=worker)
        return recorded

    def lease(self, worker: str, slots: int) -> Iterator[TrialRequest]:
        """Lease at most ``slots`` trials: queued ones first, then new ones. A suspect is leased alone."""
        state, roster = self._state, self._state.roster
        if any(lease.is_suspect for lease in roster.held_by(worker)):
            return
        to_propose = max(0, self._plan.target_trials - len(state.history))
        slots = min(slots, roster.fair_share(len(roster.queued()) + to_propose))
        queued = roster.choose_queued(worker, slots, state.history)
        yield from self._lease_queued(worker, queued)
        if any(roster.leases[number].is_suspect for number in queued):
            return
        new = self._take(slots - len(queued))
        if new:
            state.pace.begin(state.clock())
        for trial in self._add(new, worker) if new else ():
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
            lease = state.roster.leases[number]
            lease.attempt, lease.worker = attempt.attempt, worker
            state.history = state.history.changed(number, state=TrialState.RUNNING, attempt=attempt.attempt)
            yield trial_request(state.history[number], attempt=attempt.attempt, plan=self._plan.training)

    def snapshots(self, requests: Iterable[TrialRequest]) -> tuple[ArtefactRecord, ...]:
        """Return the snapshots of earlier attempts at the trials, the newest of each first."""
        study, ledger = self._state.study, self._state.ledger
        retried = (request.trial for request in requests if request.attempt > 1)
        kept = (one for trial in retried for one in ledger.artefacts(study.id, trial) if one.kind == "snapshot")
        return tuple(sorted((one for one in kept if is_own_file(study, one.path)), key=lambda one: -one.step))

    def _take(self, count: int) -> Sequence[TrialRecord]:
        """Return at most ``count`` new trials, fewer where a round of replicates must wait for open trials."""
        history, target, before = self._state.history, self._plan.target_trials, len(self._state.history)
        while len(history) < min(target, before + count) and not self.exhausted:
            design = self._state.proposer.next_of_design(history)
            one = round_of(len(history), self._rounds) if design is None else None
            # a round begins when all trials before it have ended
            if one is not None and any(not trial.state.is_terminal for trial in history[: one.begins_at]):
                break
            trial = None if design is not None else self._replicate(history, one)
            trial = self._proposed(history, design) if trial is None else trial
            history = history if trial is None else history.added([trial])
        return history[before:]

    def _replicate(self, history: StudyHistory, one: ReplicateRound | None) -> TrialRecord | None:
        """Return the next trial of a round that may begin, or an early replicate; None if neither is due."""
        plan = self._plan
        if one is None:
            original = early_original(history) if plan.repeats_early and plan.space.is_searched else None
            return None if original is None else repeat(original, len(history), study_seed=plan.seed)
        if one.begins_at not in self._finalists:
            before = history[: one.begins_at]
            ranked = ranking_of(self._state.ledger, self._state.study, before).trials
            complete = [before[each.number] for each in ranked if each.state is TrialState.COMPLETE]
            self._finalists[one.begins_at] = finalists_of(one, complete)
        finalists = self._finalists[one.begins_at]
        return replicate(len(history), one, finalists, study_seed=plan.seed)

    def _proposed(self, history: StudyHistory, design: Candidate | None) -> TrialRecord | None:
        """Return the next trial of the initial design, else a proposal of the search; None if it is exhausted."""
        plan, proposer, candidate = self._plan, self._state.proposer, design
        try:
            candidate = candidate or proposer.sampled(history)
        except SpaceExhausted as reason:
            self.exhausted = str(reason)
            self._state.record_event(EventKind.EXHAUSTED, self.exhausted)
        for method, why in proposer.left_out.items():
            if method not in self._left_out:
                self._left_out.add(method)
                self._state.record_event(EventKind.LEFT_OUT, f"{method}: {why}")
        if candidate is None:
            return None
        number, heads = len(history), plan.head_parameters
        return new_trial(candidate, plan.space.shape, number=number, study_seed=plan.seed, head_parameters=heads)
