"""What the model is told of a trial: what was tried, and every score that was read of it."""

from dataclasses import dataclass

from search_space.configuration import Configuration
from search_space.space.space import Candidate
from studies.records import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScore:
    """A score of a trial at a rung or at its end.

    Attributes:
        fraction: Of the steps of a whole trial, in (0, 1].
        score: Higher is better.
        standard_error: Of the score, from the number of examples; 0 where it is not known.
        loss: On the same examples, lower is better; None where it is not known or says nothing beside the score.
        time: When it was read, in any unit; readings are heard in the order of time, number and fraction.
    """

    fraction: float
    score: float
    standard_error: float = 0.0
    loss: float | None = None
    time: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A trial of the history; complete, pruned, running and published ones alike.

    Attributes:
        number: Of the trial.
        configuration: What is trained.
        attention_learning_rate: Peak rate at attention; None without edits there.
        ffn_learning_rate: Peak rate at the FFN; None without edits there.
        fingerprint: Of the configuration and its rates.
        method: The published method or point as it was named; None for points of the search.
        origin: ``published``, ``proposed`` or ``replicate``.
        state: Where it stands.
        readings: What was read of it.
        head_learning_rate: Peak rate of the task head; None for that of all trials of the study.
    """

    number: int
    configuration: Configuration
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    fingerprint: str
    method: str | None = None
    origin: str = "proposed"
    state: TrialState = TrialState.COMPLETE
    readings: tuple[MeasuredScore, ...] = ()
    head_learning_rate: float | None = None

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        *,
        number: int,
        state: TrialState = TrialState.COMPLETE,
        readings: tuple[MeasuredScore, ...] = (),
    ) -> "Observation":
        """A trial of a candidate."""
        return cls(
            number=number,
            configuration=candidate.configuration,
            attention_learning_rate=candidate.attention_learning_rate,
            ffn_learning_rate=candidate.ffn_learning_rate,
            fingerprint=candidate.fingerprint,
            method=candidate.method,
            origin="proposed" if candidate.method is None else "published",
            state=state,
            readings=readings,
            head_learning_rate=candidate.head_learning_rate,
        )
