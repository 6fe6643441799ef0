"""The trials of a study as the model of the search is told of them, in step with the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import cast

from search_space.space.space import Candidate
from studies.records import ReadingRecord, TrialRecord, TrialState
from studies.search.factored.from_ledger import loss_of, observations, share_error
from studies.search.factored.hyperparameters import PriorsOf
from studies.search.factored.observation import Measured, Observation
from studies.search.objectives import SizeGoal


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
    priors: PriorsOf = PriorsOf.WITH_PACE

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


class Chronicle:
    """All trials as they are now, in the order of their numbers.

    A ledger has no times of readings, and the times at which two trials end together differ from one launch to the
    next; so readings of trials that have ended are heard in the order of their numbers, those of running trials last.
    Records of a ledger are read when somebody asks.
    """

    def __init__(self, course: Course) -> None:
        """Begin without trials."""
        self._course = course
        self._trials: list[Observation | None] = []
        self._unread: dict[int, tuple[TrialRecord, Sequence[ReadingRecord]]] = {}

    @property
    def trials(self) -> Sequence[Observation]:
        """All of them."""
        for number in tuple(self._unread):
            self._trial(number)
        return cast(list[Observation], self._trials)

    def take(self, candidate: Candidate) -> None:
        """Know of a candidate as the next trial, which counts as running from now on."""
        self._trials.append(Observation.of(candidate, number=len(self._trials), state=TrialState.RUNNING))

    def replay(self, trial: TrialRecord, readings: Sequence[ReadingRecord]) -> None:
        """Tell of the next trial of a ledger."""
        self._unread[len(self._trials)] = trial, readings
        self._trials.append(None)

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading; of two at the same step the first stands, as in the ledger."""
        self._trials[number] = self._with_reading(self._trial(number), step, score, loss)

    def close(self, number: int, state: TrialState) -> None:
        """Tell how a trial ended, or that it is queued."""
        self._trials[number] = _closed(self._trial(number), state)

    def _trial(self, number: int) -> Observation:
        known = self._trials[number]
        if known is None:
            record, readings = self._unread.pop(number)
            (known,) = observations([record], {}, steps=self._course.steps)
            for reading in sorted(readings, key=lambda one: one.step):
                known = self._with_reading(known, reading.step, reading.score, loss_of(reading))
            known = self._trials[number] = _closed(known, record.state)
        return known

    def _with_reading(self, trial: Observation, step: int, score: float, loss: float | None) -> Observation:
        found = self._course.measured(step, score, loss, time=inf)
        if any(one.fraction == found.fraction for one in trial.readings):
            return trial
        return replace(trial, readings=(*trial.readings, found))


def _closed(trial: Observation, state: TrialState) -> Observation:
    time = 0.0 if state.is_terminal else inf
    return replace(trial, state=state, readings=tuple(replace(one, time=time) for one in trial.readings))
