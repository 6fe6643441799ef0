"""Points that fit a budget, and parts of the model that can be edited together."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import BudgetError, SearchSpaceError
from search_space.exportability import inexpressible
from search_space.forms import FORMS
from search_space.layers import AllLayers, Layers, shrinking_choices
from search_space.mergeability import unmergeable_edits
from search_space.parameter_counts.flops import extra_flops
from search_space.space.layer_choice import stack_depth
from search_space.space.options import SpaceOptions
from search_space.space.points import ATTENTION, FFN, PointCost, min_cost, points_of
from search_space.space.product import Point, Structure

USUAL_SHARE = 0.9
"""Least share of every part's structures that must fit at all layers for the others to be left out."""


class BudgetFit:
    """Points that fit a budget in any combination, with as many parts together as possible.

    They fit at all layers; if fewer than `USUAL_SHARE` of a part's points do, they fit at the last layer.

    Attributes:
        points: Points of every part that can be edited.
        placements: Parts that are edited together, by the name of their choice.
        part_limit: Most that each of them may cost at its smallest.
        fits_all_layers: Whether all of them fit at all layers.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error names the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """

    def __init__(
        self, parts: tuple[str, ...], shape: BackboneShape, options: SpaceOptions, *, budget: int, has_layers: bool
    ) -> None:
        """Compute the least cost of every point and select those that fit.

        Args:
            parts: Parts that the options allow.
            shape: Shape of the backbone.
            options: Options of the space.
            budget: Most stored parameters.
            has_layers: Whether the backbone allows a chosen kind of layers.
        """
        self._shape, self._options, self._budget = shape, options, budget
        self.points: Mapping[str, tuple[Point, ...]] = {}
        self.placements: Mapping[str, tuple[str, ...]] = {}
        self.part_limit, self.fits_all_layers = self._share_of(1), True
        if options.methods:
            return
        costs = {part: points for part in parts if (points := self._costs(part))}
        if not costs or not has_layers:
            has_forms = bool(options.attention_forms or options.ffn_forms)
            if not has_forms and any(point.settings for point in options.published_points):
                return
            raise SearchSpaceError(
                "the study must leave something to search; got no form at attention or FFN that is valid on "
                f"{shape.family}{' and can be merged' if options.mergeable else ''}"
                f"{' and that peft can load' if options.exportable else ''}"
                f"{f' with a rank of at least {options.rank[0]}' if options.rank else ''}. "
                f"Allow more forms{'' if has_layers else ' and layers'}"
                f"{'' if has_forms else ', or name published points such as lora_qv:r=8'}."
            )
        together = self._fit_together(costs)
        self.fits_all_layers = all(
            sum(cost.parameters <= self.part_limit.parameters for cost in points.values()) >= USUAL_SHARE * len(points)
            for points in costs.values()
        )
        if not self.fits_all_layers:
            costs = {part: self._at_last_layer(part, points) for part, points in costs.items()}
            together = self._fit_together(costs)
        self.points = {part: points for part, points in self.points.items() if points}
        if not self.points:
            smallest = min(cost.parameters for points in costs.values() for cost in points.values())
            if smallest <= budget:
                raise BudgetError(
                    f"the study must allow at least one configuration; got max_extra_flops {options.max_extra_flops:,},"
                    f" within which nothing has at most {budget:,} parameters. Raise one of them."
                )
            raise BudgetError(
                f"the budget must allow at least one configuration; got {budget:,} parameters, and the smallest "
                f"that fits the study has {smallest:,}. Raise the budget{', or lower space.rank' * bool(options.rank)}."
            )
        sets = [chosen for size in range(together, 0, -1) for chosen in combinations(self.points, size)]
        self.placements = {"both" if chosen == (ATTENTION, FFN) else "+".join(chosen): chosen for chosen in sets}

    def layers(self, chosen: Mapping[str, Structure], layers: Mapping[str, Layers]) -> Mapping[str, Layers]:
        """Return the layers of every side: as chosen, or the largest later part of them that fits the side's share.

        Args:
            chosen: Structure of each part that is edited.
            layers: Layer choices at ``attention`` and ``ffn``.
        """
        if self.fits_all_layers or sum(sum(self._least(chosen, *one)) for one in layers.items()) <= self._budget:
            return layers
        share, fitting = self._budget // len(chosen), {}
        for side, asked in layers.items():
            smaller = [*shrinking_choices(asked, stack_depth(self._shape))]
            fits = (one for one in smaller if max(self._least(chosen, side, one)) <= share)
            fitting[side] = next(fits, smaller[-1])
        return fitting

    def _least(self, chosen: Mapping[str, Structure], side: str, layers: Layers) -> list[int]:
        """Return the least parameters of each part of a side at some layers."""
        sums = []
        for part, points in chosen.items():
            if (part == FFN) is (side == FFN):
                costs = [self._cost(part, point, layers) for point in points]
                sums.append(sum(cost.parameters for cost in costs if cost is not None))
        return sums

    def _fit_together(self, costs: Mapping[str, Mapping[Point, PointCost]]) -> int:
        """Keep the points that fit with as many parts together as possible, and return the number of parts."""
        for together in range(len(costs), 0, -1):
            self.part_limit = self._share_of(together)
            self.points = {
                part: tuple(point for point, cost in points.items() if cost.is_within(self.part_limit))
                for part, points in costs.items()
            }
            if all(self.points.values()):
                break
        return together

    def _share_of(self, together: int) -> PointCost:
        """Return the most that each of some parts may cost at its smallest."""
        limit = self._options.max_extra_flops
        flops = math.inf if limit is None else limit // together
        return PointCost(parameters=self._budget // together, extra_flops=flops)

    def _cost(self, part: str, point: Point, layers: Layers) -> PointCost | None:
        return min_cost(point, self._shape, self._options, width_step(part, self._options), layers)

    def _costs(self, part: str) -> dict[Point, PointCost]:
        """Return the points of a part with their least cost."""
        points = points_of(part, self._shape, self._options)
        return {point: cost for point in points if (cost := self._cost(part, point, AllLayers())) is not None}

    def _at_last_layer(self, part: str, costs: Mapping[Point, PointCost]) -> dict[Point, PointCost]:
        """Return the points of a part with their parameters at the last layer; FLOPs stay those at all layers."""
        *_, last = shrinking_choices(AllLayers(), stack_depth(self._shape))
        at_last = {point: self._cost(part, point, last) or cost for point, cost in costs.items()}
        return {point: replace(cost, parameters=at_last[point].parameters) for point, cost in costs.items()}


def check_limits(configuration: Configuration, shape: BackboneShape, options: SpaceOptions) -> None:
    """Check a configuration against the limits of a study other than the budget.

    Raises:
        BudgetError: If a limit is exceeded.
    """
    if options.mergeable:
        for name, reason in unmergeable_edits(configuration, shape).items():
            raise BudgetError(f"configurations of this study must be mergeable into the weights; got {name}: {reason}.")
    if options.exportable is not None and configuration.edits:
        for name, reason in inexpressible(configuration, shape).items():
            raise BudgetError(f"configurations of this study must be ones that peft can load; got {name}: {reason}.")
    low, high = options.rank or (1, math.inf)
    for form in (edit.sized_form for edit in configuration.edits):
        if form is not None and form.has_rank and not low <= form.width <= high - form.width_step * (form.widened > 0):
            raise BudgetError(f"configurations of this study must have ranks from {low} to {high}; got {form.size}.")
    flops, limit = extra_flops(configuration, shape), options.max_extra_flops
    if limit is not None and flops > limit:
        raise BudgetError(f"this configuration adds {flops:,} FLOPs per token; max_extra_flops is {limit:,}.")


def width_step(part: str, options: SpaceOptions) -> int:
    """Return the smallest width that every form at the other parts can have, too."""
    if options.sites == "tied" or part == FFN:
        return 1
    has_products = any("products" in FORMS[name].dimensions for name in options.attention_forms)
    step, low = max(options.values.products) if has_products else 1, options.rank[0] if options.rank else 1
    return -(-low // step) * step
