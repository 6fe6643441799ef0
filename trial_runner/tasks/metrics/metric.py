"""What a metric is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

Texts = Sequence[str]
References = Sequence[Sequence[str]]


class Measures(StrEnum):
    """What a metric is computed from."""

    CLASSES = "classes"
    """Predicted classes ``(B,)``, true ones ``(B,)``, and the number of classes of the task."""
    NUMBERS = "numbers"
    """Predicted numbers ``(B,)`` and true ones ``(B,)``."""
    TEXTS = "texts"
    """The text that was written for each example, and the references of each."""
    LOSS = "loss"
    """The mean cross-entropy of a target token, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measure of how good a trial is.

    Attributes:
        kinds: Names of the kinds of task that it is for.
        measures: What ``compute`` is given.
        compute: The value.
        higher_is_better: Whether a better trial has a higher value; if not, its score is the value negated.
        bounds: Lowest and highest value.
        is_of_answers: Whether it looks at the answer proper of a text, where the task says what that stands behind.
    """

    name: str
    kinds: tuple[str, ...]
    measures: Measures
    compute: Callable[..., float]
    higher_is_better: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    is_of_answers: bool = False

    @property
    def needs_generation(self) -> bool:
        """Whether texts must be written before it can be computed."""
        return self.measures is Measures.TEXTS

    def score(self, value: float) -> float:
        """What a search maximises."""
        return value if self.higher_is_better else -value
