"""What a ledger holds as observations."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from search_space.space.space import HEAD_RATE
from studies.objectives import SizeGoal
from studies.records import Reading, TrialRecord
from studies.surrogate.observation import MeasuredScore, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationModel:
    """What every trial of a study goes through.

    Attributes:
        steps: Of a whole trial; what is read later counts as read at its end.
        examples: That a score between 0 and 1 is a mean over; None if that is not known.
        rung_examples: The same before the last step; None for as many.
        goal: What of it is to be small, beside a high score; None for nothing.
    """

    steps: int = 1
    examples: int | None = None
    rung_examples: int | None = None
    goal: SizeGoal | None = None

    def observation(self, trial: TrialRecord, readings: Sequence[Reading] = ()) -> Observation:
        """What a ledger holds of a trial.

        When it ended is left out, for that differs from one launch to the next.
        """
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
            head_learning_rate=None if HEAD_RATE not in trial.proposal else float(str(trial.proposal[HEAD_RATE])),
            values=None if trial.score is None else (trial.score, *size),
            proposal=trial.proposal,
        )

    def measured(self, step: int, score: float, loss: float | None = None) -> MeasuredScore:
        """A reading as a search is told of it."""
        fraction = min(1.0, step / self.steps)
        error = 0.0
        if self.examples and 0 <= score <= 1:
            asked = self.examples if self.rung_examples is None or fraction >= 1 else self.rung_examples
            error = share_error(score, asked, fraction)
        return MeasuredScore(fraction=fraction, score=score, standard_error=error, loss=loss, step=step)


def loss_of(reading: Reading) -> float | None:
    """The validation loss of a reading; None if it is not finite, or is the score itself."""
    loss = reading.metrics.get("validation_loss", math.nan)
    return loss if math.isfinite(loss) and loss != -reading.score else None


def share_error(score: float, examples: int, fraction: float = 1.0) -> float:
    """The standard error of a share of right answers, such as an accuracy, beside other trials of the same study.

    All trials are asked the same examples: what makes a set easy or hard helps or hurts all of them alike and says
    nothing about which is better. Of the variance p(1 - p)/n that part is left out which trials have in common, see
    `common_luck`.

    Args:
        score: The share.
        examples: That were asked.
        fraction: Of the steps of a whole trial, after which they were.
    """
    return binomial_error(score, examples, common_luck(fraction))


def binomial_error(share: float, examples: int, common: float = 0.0) -> float:
    """The standard error of a share of right answers: `sqrt(p (1 - p) (1 - common) / n)`.

    Half an example more or less keeps it above 0 where all or none were right.
    """
    right = min(max(share, 0.5 / examples), 1 - 0.5 / examples)
    return math.sqrt(right * (1 - right) * (1 - common) / examples)


def common_luck(fraction: float) -> float:
    """How the right answers of two trials of a study correlate after a share of their steps.

    Measured over 9 studies on docstrings, sst2 and banking77: 0.26 to 0.32 at a
    quarter, 0.35 to 0.51 at a half and 0.50 to 0.66 at the end; this is a line through the lower ends.

    Args:
        fraction: Of the steps of a whole trial, in (0, 1].
    """
    return min(max(0.5 + 0.12 * math.log2(fraction), 0.0), 0.5)
