"""The first trials of a study: which they are, and at which rates, before a sampler is asked."""

from collections.abc import Mapping
from dataclasses import dataclass

from studies.search.warm_start import WarmStart
from studies.surrogate.features import lr_at
from studies.surrogate.prior_mean import BEST_UNIT_LR


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialDesign:
    """How a study begins.

    Attributes:
        published: Published methods, tried in this order after what was learned, at the rates that are expected to be
            best.
        lessons: What was learned from earlier studies.
    """

    published: tuple[str, ...] = ()
    lessons: WarmStart = WarmStart()  # noqa: RUF009 - frozen

    def rates(self, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """The rate at which a form is tried first, by the name of its parameter.

        Args:
            ranges: Lowest and highest rate by form.
        """
        places = self.lessons.places(ranges)
        best = {form: places[form].mean if form in places else BEST_UNIT_LR for form in ranges}
        return {f"learning_rate.{form}": lr_at(best[form], *bounds) for form, bounds in ranges.items()}
