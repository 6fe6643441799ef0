"""Observations of the surrogate: a configuration with all scores measured for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from search_space.configuration import Configuration
from search_space.space.space import Candidate
from studies.records import TrialState


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScore:
    """Score of a trial at a rung or at its end.

    Attributes:
        fraction: Share of the steps of a full trial, in (0, 1].
        score: Score; higher is better.
        standard_error: Standard error by the number of examples; 0 if unknown.
        loss: Loss on the same examples, lower is better; None if unknown or equal to the score.
        step: Step of the measurement; 0 where it is not needed.
    """

    fraction: float
    score: float
    standard_error: float = 0.0
    loss: float | None = None
    step: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Trial of the history, whether complete, pruned, running or published.

    Attributes:
        number: Number of the trial.
        configuration: Trained configuration.
        attention_learning_rate: Peak learning rate at attention; None without edits there.
        ffn_learning_rate: Peak learning rate at the FFN; None without edits there.
        fingerprint: Fingerprint of the configuration and its learning rates.
        method: Name of the published method or point; None for proposals of the search.
        origin: ``published``, ``proposed`` or ``replicate``.
        state: State of the trial.
        readings: Scores measured so far.
        ended_at: Time of the end, or any number in the same order. Readings are ordered by it, then by number and
            fraction; those of trials that have not ended come last. So hyper-parameters that were fitted to the first
            trials stay fitted, however many trials run at once.
        values: Score of a complete trial, and its size if there is a size goal.
        proposal: Parameters with which the trial was proposed.
        head_learning_rate: Peak learning rate of the task head; None for the rate of the study.
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
        """Forms of the first edits at attention and at the FFN, which own the learning rates; None without edits."""
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
        """Return an observation of a candidate."""
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
