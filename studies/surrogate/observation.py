"""What the model is told of a trial: what was tried, and every score that was read of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
        step: After which it was read; 0 where nobody asks for it.
    """

    fraction: float
    score: float
    standard_error: float = 0.0
    loss: float | None = None
    step: int = 0


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
        ended_at: When it ended, in any unit. Readings count in the order of this, of numbers and of fractions; those
            of trials that have not ended come last.
        values: Of a complete trial: the score, and the size where there is a goal.
        proposal: The parameters with which it was proposed.
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
    ended_at: float = 0.0
    values: tuple[float, ...] | None = None
    proposal: Mapping[str, object] = field(default_factory=dict)

    @property
    def forms(self) -> tuple[str | None, str | None]:
        """Of the first edits at attention and at the FFN, whose rates are theirs; None without edits there."""
        sides = (self.configuration.attention, self.configuration.ffn)
        attention, ffn = (edits[0].form.name if edits else None for edits in sides)
        return attention, ffn

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
            proposal=candidate.parameters,
        )
