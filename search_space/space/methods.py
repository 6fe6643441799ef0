"""Published methods at the sizes and scales of a space."""

from collections.abc import Mapping

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import BudgetError, InvalidEditError
from search_space.published.point import PublishedPoint
from search_space.space.budget_fit import check_limits
from search_space.space.options import SpaceOptions
from search_space.space.parameter_table import METHOD, SCALE, SIZE
from search_space.space.trial_protocol import Parameter, ParameterRecorder, ParameterSource


class MethodFit:
    """Published methods resized to a budget, within the limits of a space.

    Raises:
        BudgetError: If a method that the options name does not fit.
    """

    def __init__(self, shape: BackboneShape, options: SpaceOptions, *, budget: int) -> None:
        """Check that the methods of the options fit.

        Args:
            shape: Shape of the backbone.
            options: Options of the space.
            budget: Most stored parameters.
        """
        self._shape, self._options, self._budget = shape, options, budget
        for point in options.methods:
            try:
                self.configuration(point)
            except (BudgetError, InvalidEditError) as error:
                line = f"each method of space.methods must fit the study; got {point}: {error} Name others."
                raise BudgetError(line) from error

    def configuration(self, point: PublishedPoint, scale: float | None = None, fraction: float = 1.0) -> Configuration:
        """Return a method or point that satisfies all limits.

        Args:
            point: Method, which is resized, or point.
            scale: Fixed scale of a method that has one, unless the point sets it; None for the usual one.
            fraction: Used share of the budget.

        Raises:
            BudgetError: If it does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        configuration = point.configuration(
            self._shape,
            parameters=self._budget,
            scale=self._options.published_scale if scale is None else scale,
            budget_fraction=fraction,
            extra_flops=self._options.max_extra_flops if self._options.methods else None,
            rank=self._options.rank,
        )
        check_limits(configuration, self._shape, self._options)
        return configuration

    def fits(self, point: PublishedPoint) -> bool:
        """Return whether a method or point is valid on the backbone and satisfies all limits."""
        try:
            self.configuration(point)
        except (BudgetError, InvalidEditError):
            return False
        return True

    def suggest(
        self, point: PublishedPoint, trial: ParameterSource, parameters: Mapping[str, Parameter]
    ) -> tuple[Configuration, ParameterRecorder]:
        """Suggest size and scale of a method that the options name; other methods use the whole budget.

        Args:
            point: Method or point.
            trial: Trial, or values by name; without values of size and scale these are the largest and the usual one.
            parameters: Parameters of the space, by name.
        """
        options, recorder = self._options, ParameterRecorder(trial, parameters)
        if point not in options.methods:
            return self.configuration(point), recorder
        scales, usual = options.open_values[SCALE], str(options.published_scale)
        if isinstance(trial, Mapping):
            first: dict[str, str | float] = {
                SIZE: options.budget_fractions[1],
                SCALE: usual if usual in scales else next(iter(scales)),
            }
            recorder = ParameterRecorder({**first, **trial}, parameters)
        if METHOD in parameters:
            recorder.values[METHOD] = str(point)
        scale = scales[recorder.choose(SCALE, tuple(scales))] if point.has_open_scale else None
        is_sized = not point.has_fixed_size and any(edit.sized_form for edit in point.structure(self._shape).edits)
        fraction = recorder.number(SIZE) if is_sized and SIZE in parameters else options.budget_fractions[1]
        return self.configuration(point, scale, fraction), recorder
