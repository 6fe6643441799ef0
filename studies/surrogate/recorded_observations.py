"""Observations made of the records of a ledger, and the standard errors of their scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from search_space.space.space import HEAD_RATE
from studies.objectives import SizeGoal
from studies.records import Reading, TrialRecord
from studies.surrogate.observation import MeasuredScore, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationModel:
    """Properties that all trials of a study share, from which observations are made.

    Attributes:
        steps: Steps of a full trial; later readings count as read at its end.
        examples: Number of examples over which a score between 0 and 1 is a mean; None if unknown.
        rung_examples: The same before the last step; None for the same number.
        goal: Size to be minimized beside the score; None for the score alone.
    """

    steps: int = 1
    examples: int | None = None
    rung_examples: int | None = None
    goal: SizeGoal | None = None

    def observation(self, trial: TrialRecord, readings: Sequence[Reading] = ()) -> Observation:
        """Return the observation of a recorded trial."""
        size = () if self.goal is None else (self.goal.size(trial),)
        return Observation(
            number=trial.number,
            configuration=trial.configuration,
            attention_learning_rate=None if trial.attention is None else trial.attention.learning_rate,
            ffn_learning_rate=None if trial.ffn is None else trial.ffn.learning_rate,
            fingerprint=trial.fingerprint,
            method=trial.method,
            origin=trial.origin,
            state=trial.state,
            readings=tuple(self.measured(one.step, one.score, loss_of(one)) for one in readings),
            ended_at=0.0 if trial.ended_at is None else trial.ended_at.timestamp(),
            head_learning_rate=None if HEAD_RATE not in trial.proposal else float(str(trial.proposal[HEAD_RATE])),
            values=None if trial.score is None else (trial.score, *size),
            proposal=trial.proposal,
        )

    def measured(self, step: int, score: float, loss: float | None = None) -> MeasuredScore:
        """Return the measured score of a reading."""
        fraction = min(1.0, step / self.steps)
        error = 0.0
        if self.examples and 0 <= score <= 1:
            examples = self.examples if self.rung_examples is None or fraction >= 1 else self.rung_examples
            error = accuracy_error(score, examples, fraction)
        return MeasuredScore(fraction=fraction, score=score, standard_error=error, loss=loss, step=step)


def loss_of(reading: Reading) -> float | None:
    """Return the validation loss of a reading; None if it is not finite or equals the score."""
    loss = reading.metrics.get("validation_loss", math.nan)
    return loss if math.isfinite(loss) and loss != -reading.score else None


def accuracy_error(score: float, examples: int, fraction: float = 1.0) -> float:
    """Return the standard error of an accuracy in comparisons between trials of one study.

    All trials are measured on the same examples, whose difficulty shifts all scores alike. The share of the variance
    p(1 - p)/n that trials have in common, `shared_variance_fraction`, is therefore left out.

    Args:
        score: Share of right answers.
        examples: Number of examples.
        fraction: Share of the steps of a full trial, in (0, 1].
    """
    return binomial_error(score, examples, shared_variance_fraction(fraction))


def binomial_error(share: float, examples: int, common: float = 0.0) -> float:
    """Return the standard error of a share of right answers, ``sqrt(p (1 - p) (1 - common) / n)``.

    The share is kept half an example away from 0 and 1, so that the error is above 0.
    """
    clipped = min(max(share, 0.5 / examples), 1 - 0.5 / examples)
    return math.sqrt(clipped * (1 - clipped) * (1 - common) / examples)


def shared_variance_fraction(fraction: float) -> float:
    """Return the correlation between the right answers of two trials of a study after a share of their steps.

    Measured over 9 studies on docstrings, sst2 and banking77: 0.26–0.32 at a quarter, 0.35–0.51 at a half and 0.50–0.66
    at the end. This is a line through the lower ends.

    Args:
        fraction: Share of the steps of a full trial, in (0, 1].
    """
    return min(max(0.5 + 0.12 * math.log2(fraction), 0.0), 0.5)
