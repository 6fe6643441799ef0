"""Initial design of a study: its first trials and their learning rates."""

from collections.abc import Mapping
from dataclasses import dataclass

from studies.search.warm_start import WarmStart
from studies.surrogate.features import lr_at
from studies.surrogate.prior_mean import BEST_UNIT_LR


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialDesign:
    """First trials of a study.

    Attributes:
        published: Published methods, tried in this order after the warm start, at the expected best learning rates.
        warm_start: Configurations and learning rates from earlier studies.
    """

    published: tuple[str, ...] = ()
    warm_start: WarmStart = WarmStart()  # noqa: RUF009 - frozen

    def rates(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """Return the learning rate at which each form is tried first, by the name of its parameter.

        Args:
            ranges: Lowest and highest learning rate by form.
        """
        places = self.warm_start.expected_rates(ranges)
        best = {form: places[form].mean if form in places else BEST_UNIT_LR for form in ranges}
        return {f"learning_rate.{form}": lr_at(best[form], *bounds) for form, bounds in ranges.items()}
