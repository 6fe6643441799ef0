"""Interface of metrics."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

Texts = Sequence[str]
References = Sequence[Sequence[str]]


class Measures(StrEnum):
    """Inputs of a metric."""

    CLASSES = "classes"
    """Predicted classes ``(B,)``, true ones ``(B,)``, and the number of classes of the task."""
    NUMBERS = "numbers"
    """Predicted numbers ``(B,)`` and true ones ``(B,)``."""
    TEXTS = "texts"
    """Generated text and reference texts of each example."""
    LOSS = "loss"
    """Mean cross-entropy of a target token, in nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Measure of the quality of a trial.

    Attributes:
        kinds: Names of the task kinds that it applies to.
        measures: Inputs of ``compute``.
        compute: Function from these inputs to the value.
        higher_is_better: Whether a better trial has a higher value; if not, its score is the negated value.
        bounds: Lowest and highest value.
        is_of_answers: Whether it uses only a text's final answer, where the task defines a marker before it.
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
        """Whether texts must be generated to compute it."""
        return self.measures is Measures.TEXTS

    def score(self, value: float) -> float:
        """Return the score that a search maximises: the value, negated where lower is better."""
        return value if self.higher_is_better else -value
