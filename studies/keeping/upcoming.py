"""The next trials of a study: what the search proposes, and towards the end replicates of its finalists."""

from collections.abc import Callable, Collection
from itertools import chain

from studies.keeping.plan import StudyPlan
from studies.keeping.replicates import Round, finalists_of, replicate, round_of, rounds
from studies.queries.ranking import ranking_of
from studies.records import EventKind, NewTrial, StudyRecord, TrialRecord, TrialState
from studies.search.candidates import new_trial
from studies.search.proposer import Proposer, SpaceExhausted
from studies.store.ledger import Ledger


class Upcoming:
    """Says what comes next.

    Args:
        plan: Of the study.
        proposer: Told of all that is in the ledger.
        ledger: Where the study is.
        study: Its record.
        record_event: Notes something worth knowing later.

    Attributes:
        exhausted: Why nothing more can be proposed; empty while something can.
    """

    def __init__(
        self,
        plan: StudyPlan,
        proposer: Proposer,
        ledger: Ledger,
        study: StudyRecord,
        *,
        record_event: Callable[[EventKind, str], None],
    ) -> None:
        """Begin with nothing taken."""
        self.exhausted = ""
        self._plan = plan
        self._proposer = proposer
        self._ledger = ledger
        self._study = study
        self._record_event = record_event
        # a study of nothing but published methods has no finalists
        self._rounds = rounds(plan.replicates if plan.space.trees else 0, target_trials=plan.target_trials)
        self._finalists: dict[int, tuple[TrialRecord, ...]] = {}

    def take(self, count: int, *, before: Collection[int]) -> list[NewTrial]:
        """At most so many new trials; fewer where the next ones must wait for trials that have not ended.

        Args:
            count: Most of them.
            before: Numbers of the trials that have not ended.
        """
        found: list[NewTrial] = []
        while len(found) < count and self._proposer.next_number < self._plan.target_trials and not self.exhausted:
            one = None if self._proposer.is_opening else round_of(self._proposer.next_number, self._rounds)
            open_trials = chain(before, (trial.number for trial in found))
            if one is not None and any(number < one.begins_at for number in open_trials):
                break
            again = None if one is None else self._replicate(one)
            trial = self._proposed() if again is None else again
            if trial is not None:
                found.append(trial)
        return found

    def _replicate(self, one: Round) -> NewTrial | None:
        """The next trial of a round whose time has come; None if there is nothing to train again."""
        if one.begins_at not in self._finalists:
            before = self._ledger.trials(self._study.id)[: one.begins_at]
            ranked = ranking_of(self._ledger, self._study, before).trials
            complete = [each for each in ranked if each.state is TrialState.COMPLETE]
            self._finalists[one.begins_at] = finalists_of(one, complete, with_rival=self._plan.replicates_rival)
        finalists = self._finalists[one.begins_at]
        trial = replicate(self._proposer.next_number, one, finalists, study_seed=self._plan.seed)
        if trial is not None:
            self._proposer.repeat(trial)
        return trial

    def _proposed(self) -> NewTrial | None:
        """What the search proposes next; None if it is exhausted."""
        plan, left_out = self._plan, set(self._proposer.left_out)
        proposal = None
        try:
            proposal = self._proposer.propose()
        except SpaceExhausted as reason:
            self.exhausted = str(reason)
            self._record_event(EventKind.EXHAUSTED, self.exhausted)
        for method in set(self._proposer.left_out) - left_out:
            self._record_event(EventKind.LEFT_OUT, f"{method}: {self._proposer.left_out[method]}")
        if proposal is None:
            return None
        return new_trial(proposal, plan.space.shape, study_seed=plan.seed, head_parameters=plan.head_parameters)
