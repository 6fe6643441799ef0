"""A search that is asked directly: it makes whole candidates from all that is known of the trials before.

Samplers of Optuna see parameters and values. A direct search sees configurations, every reading with how sure it is,
and how far a trial goes; so it is asked for candidates itself, and Optuna is told what was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Protocol

from search_space.space.space import Candidate
from studies.search.factored.from_ledger import loss_of, observations, share_error
from studies.search.factored.hyperparameters import PriorsOf
from studies.search.factored.observation import Measured, Observation
from studies.search.objectives import SizeGoal
from studies.store.records import ReadingRecord, TrialRecord, TrialState

MAX_DRAWS = 16
"""How often a search that draws nothing new is asked again, each time with another seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What every trial of a study goes through.

    Attributes:
        steps: Of a whole trial; what is read later counts as read at its end.
        examples: That a score between 0 and 1 is a mean over; None if that is not known.
        rung_examples: The same before the last step; None for as many.
        goal: What of it is to be small, beside a high score; None for nothing.
        hears_losses: Whether a search is told losses beside scores.
        priors: Which priors its model has.
    """

    steps: int = 1
    examples: int | None = None
    rung_examples: int | None = None
    goal: SizeGoal | None = None
    hears_losses: bool = False
    priors: PriorsOf = PriorsOf.THREE_TASKS

    def measured(self, step: int, score: float, loss: float | None = None, *, time: float) -> Measured:
        """A reading as a search is told of it."""
        fraction = min(1.0, step / self.steps)
        return Measured(
            fraction=fraction,
            score=score,
            standard_error=self._standard_error(score, fraction),
            loss=loss if self.hears_losses else None,
            time=time,
        )

    def _standard_error(self, score: float, fraction: float) -> float:
        if not self.examples or not 0 <= score <= 1:
            return 0.0
        return share_error(self.examples, self.rung_examples)(score, fraction)


class AskedSearch(Protocol):
    """Proposes candidates; what it proposes depends on its seed and on the arguments only."""

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        """One that was not tried before; None if nothing new was drawn."""
        ...

    def published(
        self, history: Sequence[Observation], method: str, *, number: int, retry: int = 0
    ) -> Candidate | None:
        """A published method at rates that were not tried before; None if all that were drawn had been."""
        ...


class DirectSearch:
    """A search and the trials that it is told of, in step with the ledger.

    A ledger has no times of readings, and the times at which two trials end together differ from one launch to the
    next; so readings of trials that have ended are heard in the order of their numbers, those of running trials last.
    """

    def __init__(self, search: AskedSearch, course: Course) -> None:
        """Begin with an empty history."""
        self._search = search
        self._course = course
        self._trials: list[Observation] = []

    def ask(self, method: str | None) -> Candidate | None:
        """A candidate for the next trial, which is taken in; None if all had been tried.

        Args:
            method: The published method that it is to be; None for whatever promises most.

        Raises:
            BudgetError: If the method does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        number = len(self._trials)
        for retry in range(MAX_DRAWS):
            if method is None:
                candidate = self._search.candidate(self._trials, number=number, retry=retry)
            else:
                candidate = self._search.published(self._trials, method, number=number, retry=retry)
            if candidate is not None:
                self.take(candidate)
                return candidate
        return None

    def take(self, candidate: Candidate) -> None:
        """Know of a candidate as the next trial, which counts as running from now on."""
        self._trials.append(Observation.of(candidate, number=len(self._trials), state=TrialState.RUNNING))

    def replay(self, trial: TrialRecord, readings: Sequence[ReadingRecord]) -> None:
        """Tell of the next trial of a ledger."""
        (bare,) = observations([trial], {}, steps=self._course.steps)
        self._trials.append(bare)
        for reading in sorted(readings, key=lambda one: one.step):
            self.report(trial.number, reading.step, reading.score, loss_of(reading))
        self.close(trial.number, trial.state)

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading; of two at the same step the first stands, as in the ledger."""
        trial, found = self._trials[number], self._course.measured(step, score, loss, time=inf)
        if all(one.fraction != found.fraction for one in trial.readings):
            self._trials[number] = replace(trial, readings=(*trial.readings, found))

    def close(self, number: int, state: TrialState) -> None:
        """Tell how a trial ended, or that it is queued."""
        trial, time = self._trials[number], 0.0 if state.is_terminal else inf
        readings = tuple(replace(one, time=time) for one in trial.readings)
        self._trials[number] = replace(trial, state=state, readings=readings)
