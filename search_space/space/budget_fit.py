"""Which points fit a budget, and which parts of the model can be edited together."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import BudgetError, SearchSpaceError
from search_space.forms import FORMS
from search_space.layers import AllLayers, Layers, shrinking_choices
from search_space.mergeability import unmergeable_edits
from search_space.parameter_counts.flops import extra_flops
from search_space.space.layer_choice import stack_depth
from search_space.space.options import SpaceOptions
from search_space.space.points import ATTENTION, FFN, PointCost, min_cost, points_of
from search_space.space.product import Point, Structure

USUAL_SHARE = 0.9
"""Where at least so many of the structures of every part fit at all layers, the others are left out."""


class BudgetFit:
    """The points that fit a budget beside any others, with as many parts together as can be.

    They fit at all layers; where fewer than `USUAL_SHARE` of a part's do, at the last layer.

    Attributes:
        points: Of every part that can be edited.
        placements: The parts that are edited together, by the name of their choice.
        most: What each of them may have at its smallest.
        is_everywhere: Whether all of them fit at all layers.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error says the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """

    def __init__(
        self, parts: tuple[str, ...], shape: BackboneShape, options: SpaceOptions, *, budget: int, has_layers: bool
    ) -> None:
        """Compare what every point costs.

        Args:
            parts: Those that the options let be edited.
            shape: The backbone.
            options: What is searched.
            budget: Most stored parameters.
            has_layers: Whether the backbone has layers of the kinds that are chosen from.
        """
        self._shape, self._options, self._budget = shape, options, budget
        self.points: Mapping[str, tuple[Point, ...]] = {}
        self.placements: Mapping[str, tuple[str, ...]] = {}
        self.part_limit, self.fits_all_layers = self._share_of(1), True
        costs = {part: some for part in parts if (some := self._costs(part))}
        if not costs or not has_layers:
            has_forms = bool(options.attention_forms or options.ffn_forms)
            if not has_forms and any(point.settings for point in options.published_points):
                return
            raise SearchSpaceError(
                "the study must leave something to search; got no form at attention or FFN that is valid on "
                f"{shape.family}{' and can be merged' if options.mergeable else ''}. "
                f"Allow more forms{'' if has_layers else ' and layers'}"
                f"{'' if has_forms else ', or name published points such as lora_qv:r=8'}."
            )
        together = self._fit_together(costs)
        self.fits_all_layers = all(
            sum(cost.parameters <= self.part_limit.parameters for cost in some.values()) >= USUAL_SHARE * len(some)
            for some in costs.values()
        )
        if not self.fits_all_layers:
            costs = {part: self._at_last_layer(part, some) for part, some in costs.items()}
            together = self._fit_together(costs)
        self.points = {part: some for part, some in self.points.items() if some}
        if not self.points:
            smallest = min(cost.parameters for some in costs.values() for cost in some.values())
            if smallest <= budget:
                raise BudgetError(
                    f"the study must allow at least one configuration; got max_extra_flops {options.max_extra_flops:,},"
                    f" within which nothing has at most {budget:,} parameters. Raise one of them."
                )
            raise BudgetError(
                f"the budget must allow at least one configuration; got {budget:,} parameters, and the smallest "
                f"that fits the study has {smallest:,}. Raise the budget."
            )
        sets = [chosen for size in range(together, 0, -1) for chosen in combinations(self.points, size)]
        self.placements = {"both" if chosen == (ATTENTION, FFN) else "+".join(chosen): chosen for chosen in sets}

    def layers(self, chosen: Mapping[str, Structure], layers: Mapping[str, Layers]) -> Mapping[str, Layers]:
        """The layers of every side: as chosen, or the last of them at which its share of the budget is enough.

        Args:
            chosen: A structure for each part that is edited, or two.
            layers: At ``attention`` and ``ffn``.
        """
        if self.fits_all_layers or sum(sum(self._least(chosen, *one)) for one in layers.items()) <= self._budget:
            return layers
        share, found = self._budget // len(chosen), {}
        for side, where in layers.items():
            cut = [*shrinking_choices(where, stack_depth(self._shape))]
            found[side] = next((few for few in cut if max(self._least(chosen, side, few)) <= share), cut[-1])
        return found

    def _least(self, chosen: Mapping[str, Structure], side: str, layers: Layers) -> list[int]:
        """The least parameters of each part of a side at some layers."""
        found = []
        for part, points in chosen.items():
            if (part == FFN) is (side == FFN):
                costs = [self._cost(part, point, layers) for point in points]
                found.append(sum(cost.parameters for cost in costs if cost is not None))
        return found

    def _fit_together(self, costs: Mapping[str, Mapping[Point, PointCost]]) -> int:
        """Keep the points that fit, with as many parts together as there can be; how many those are."""
        for together in range(len(costs), 0, -1):
            self.part_limit = self._share_of(together)
            self.points = {
                part: tuple(point for point, cost in some.items() if cost.is_within(self.part_limit))
                for part, some in costs.items()
            }
            if all(self.points.values()):
                break
        return together

    def _share_of(self, together: int) -> PointCost:
        """What each of so many parts may have at its smallest."""
        limit = self._options.max_extra_flops
        flops = math.inf if limit is None else limit // together
        return PointCost(parameters=self._budget // together, extra_flops=flops)

    def _cost(self, part: str, point: Point, layers: Layers) -> PointCost | None:
        return min_cost(point, self._shape, self._options, width_step(part, self._options), layers)

    def _costs(self, part: str) -> dict[Point, PointCost]:
        """The points of a part with their least cost."""
        points = points_of(part, self._shape, self._options)
        return {point: cost for point in points if (cost := self._cost(part, point, AllLayers())) is not None}

    def _at_last_layer(self, part: str, costs: Mapping[Point, PointCost]) -> dict[Point, PointCost]:
        """The points of a part with their parameters at the last layer; limits of FLOPs are those of all."""
        *_, last = shrinking_choices(AllLayers(), stack_depth(self._shape))
        found = {point: self._cost(part, point, last) or cost for point, cost in costs.items()}
        return {point: replace(cost, parameters=found[point].parameters) for point, cost in costs.items()}


def check_limits(configuration: Configuration, shape: BackboneShape, options: SpaceOptions) -> None:
    """Refuse what is beyond the limits of a study, the budget aside.

    Raises:
        BudgetError: If it is.
    """
    if options.mergeable:
        for name, why in unmergeable_edits(configuration, shape).items():
            raise BudgetError(f"the study takes what can be merged into the weights; got {name}: {why}.")
    flops, most = extra_flops(configuration, shape), options.max_extra_flops
    if most is not None and flops > most:
        raise BudgetError(f"this configuration adds {flops:,} FLOPs per token; max_extra_flops is {most:,}.")


def width_step(part: str, options: SpaceOptions) -> int:
    """Smallest width that all edits beside those of a part can have, too."""
    has_products = any("products" in FORMS[name].dimensions for name in options.attention_forms)
    has_steps = options.sites == "separate" and part != FFN and has_products
    return max(options.products) if has_steps else 1
