"""The trials of a study as the model of the search is told of them, in step with the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import cast

from search_space.space.space import Candidate
from studies.objectives import SizeGoal
from studies.records import ReadingRecord, TrialRecord, TrialState
from studies.surrogate.hyperparameters import PriorsOf
from studies.surrogate.observation import MeasuredScore, Observation
from studies.surrogate.recorded_observations import loss_of, observations, share_error


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationModel:
    """What every trial of a study goes through.

    Attributes:
        steps: Of a whole trial; what is read later counts as read at its end.
        examples: That a score between 0 and 1 is a mean over; None if that is not known.
        rung_examples: The same before the last step; None for as many.
        goal: What of it is to be small, beside a high score; None for nothing.
        use_validation_loss: Whether a search is told losses beside scores.
        priors: Which priors its model has.
    """

    steps: int = 1
    examples: int | None = None
    rung_examples: int | None = None
    goal: SizeGoal | None = None
    use_validation_loss: bool = False
    priors: PriorsOf = PriorsOf.WITH_PACE

    def measured(self, step: int, score: float, loss: float | None = None, *, time: float) -> MeasuredScore:
        """A reading as a search is told of it."""
        fraction = min(1.0, step / self.steps)
        return MeasuredScore(
            fraction=fraction,
            score=score,
            standard_error=self._standard_error(score, fraction),
            loss=loss if self.use_validation_loss else None,
            time=time,
        )

    def _standard_error(self, score: float, fraction: float) -> float:
        if not self.examples or not 0 <= score <= 1:
            return 0.0
        return share_error(self.examples, self.rung_examples)(score, fraction)


@dataclass(slots=True, kw_only=True)
class KnownTrial:
    """A trial as it is now.

    Attributes:
        source: What was proposed, or what a ledger holds of it.
        parameters: With which it was proposed.
        method: The published method or point that it is; None for points of the search.
        state: Where it stands.
        values: Of a complete trial: the score, and the size where there is a goal.
        readings: Scores and losses by step.
    """

    source: TrialRecord | Candidate
    parameters: Mapping[str, object]
    method: str | None
    state: TrialState
    values: list[float] | None = None
    readings: dict[int, tuple[float, float | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, trial: TrialRecord, readings: Sequence[ReadingRecord], goal: SizeGoal | None) -> "KnownTrial":
        """What a ledger holds."""
        score = trial.score if trial.state is TrialState.COMPLETE else None
        known = cls(
            source=trial,
            parameters=trial.proposal,
            method=trial.method,
            state=trial.state,
            values=None if score is None else [score] if goal is None else [score, goal.size(trial)],
        )
        for reading in sorted(readings, key=lambda one: one.step):
            known.readings.setdefault(reading.step, (reading.score, loss_of(reading)))
        return known


class ObservationLog:
    """All trials of a study as they are now, in the order of their numbers: proposed here, or replayed from a ledger.

    A ledger has no times of readings, and the times at which two trials end together differ from one launch to the
    next; so readings of trials that have ended are heard in the order of their numbers, those of running trials last.
    """

    def __init__(self, course: ObservationModel) -> None:
        """Begin without trials."""
        self._course = course
        self._observed: list[Observation | None] = []
        self._changed: set[int] = set()
        self.known: list[KnownTrial] = []

    @property
    def trials(self) -> Sequence[Observation]:
        """All of them as the model of the search is told of them."""
        for number in self._changed:
            self._observed[number] = self._observation(number, self.known[number])
        self._changed.clear()
        return cast(list[Observation], self._observed)

    def take(self, candidate: Candidate) -> None:
        """Know of a candidate as the next trial, which counts as running from now on."""
        state, parameters = TrialState.RUNNING, candidate.parameters
        self._add(KnownTrial(source=candidate, parameters=parameters, method=candidate.method, state=state))

    def replay(self, trial: TrialRecord, readings: Sequence[ReadingRecord]) -> None:
        """Tell of the next trial of a ledger."""
        self._add(KnownTrial.of(trial, readings, self._course.goal))

    def report(self, number: int, step: int, score: float, loss: float | None = None) -> None:
        """Tell of a reading; of two at the same step the first stands, as in the ledger."""
        self.known[number].readings.setdefault(step, (score, loss))
        self._changed.add(number)

    def close(self, number: int, state: TrialState, values: list[float] | None = None) -> None:
        """Tell how a trial ended, or that it is queued."""
        self.known[number].state, self.known[number].values = state, values
        self._changed.add(number)

    def _add(self, known: KnownTrial) -> None:
        self._changed.add(len(self.known))
        self._observed.append(None)
        self.known.append(known)

    def _observation(self, number: int, known: KnownTrial) -> Observation:
        seen = self._observed[number] or _seen(number, known.source)
        time = 0.0 if known.state.is_terminal else inf
        readings: dict[float, MeasuredScore] = {}
        for step, (score, loss) in known.readings.items():
            found = self._course.measured(step, score, loss, time=time)
            readings.setdefault(found.fraction, found)
        return replace(seen, state=known.state, readings=tuple(readings.values()))


def _seen(number: int, source: TrialRecord | Candidate) -> Observation:
    if isinstance(source, Candidate):
        return Observation.of(source, number=number)
    return observations([source], {}, steps=1)[0]
