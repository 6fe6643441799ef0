"""The first trials of a study: which they are, and at which rates, before a sampler is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from studies.search.factored.trends import BEST_RATE
from studies.search.factored.view import absolute_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a study begins.

    Attributes:
        published: Published methods, tried in this order.
        has_expected_rates: Whether each is tried first at the rates that are expected to be best, so that its place in
            the list says nothing of its rates; else the sampler draws them, one method after another.
    """

    published: tuple[str, ...] = ()
    has_expected_rates: bool = False

    def rates(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """The rate at which a form is tried first, by the name of its parameter.

        Args:
            ranges: Lowest and highest rate by form.
        """
        return {f"learning_rate.{form}": absolute_rate(BEST_RATE, *bounds) for form, bounds in ranges.items()}
