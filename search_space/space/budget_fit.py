"""Which points fit a budget, and which parts of the model can be edited together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.errors import BudgetError, SearchSpaceError
from search_space.forms import FORMS
from search_space.layers import AllLayers, Layers, fewer
from search_space.mergeability import unmergeable
from search_space.parameter_counts.flops import extra_flops
from search_space.space.layer_choice import depth_of
from search_space.space.options import SpaceOptions
from search_space.space.points import ATTENTION, FFN, PointCost, least_cost, points_of
from search_space.space.product import Point, Structure

USUAL_SHARE = 0.9
"""Where at least so many of the structures of every part fit at all layers, the others are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """What fits a budget.

    Attributes:
        points: Of every part that can be edited, those that fit beside any others.
        placements: The parts that are edited together, by the name of their choice.
        most: What each of them may have at its smallest.
        is_everywhere: Whether all of them fit at all layers.
        shape: The backbone.
        options: What is searched.
        budget: Most stored parameters.
    """

    points: Mapping[str, tuple[Point, ...]]
    placements: Mapping[str, tuple[str, ...]]
    most: PointCost
    is_everywhere: bool
    shape: BackboneShape
    options: SpaceOptions
    budget: int

    def layers(self, chosen: Mapping[str, Structure], layers: Mapping[str, Layers]) -> Mapping[str, Layers]:
        """The layers of every side: as chosen, or the last of them at which its share of the budget is enough.

        Args:
            chosen: A structure for each part that is edited, or two.
            layers: At ``attention`` and ``ffn``.
        """
        if self.is_everywhere or sum(sum(self._least(chosen, *one)) for one in layers.items()) <= self.budget:
            return layers
        share, found = self.budget // len(chosen), {}
        for side, where in layers.items():
            cut = [*fewer(where, depth_of(self.shape))]
            found[side] = next((few for few in cut if max(self._least(chosen, side, few)) <= share), cut[-1])
        return found

    def _least(self, chosen: Mapping[str, Structure], side: str, layers: Layers) -> list[int]:
        """The least parameters of each part of a side at some layers."""
        found = []
        for part, points in chosen.items():
            if (part == FFN) is (side == FFN):
                step = width_step(part, self.options)
                costs = [least_cost(point, self.shape, self.options, step, layers) for point in points]
                found.append(sum(cost.parameters for cost in costs if cost is not None))
        return found


def that_fit(
    parts: tuple[str, ...], shape: BackboneShape, options: SpaceOptions, *, budget: int, has_layers: bool
) -> Fitting:
    """The points that fit beside any others, with as many parts together as can be.

    They fit at all layers; where fewer than `USUAL_SHARE` of a part's do, at the last layer.

    Args:
        parts: Those that the options let be edited.
        shape: The backbone.
        options: What is searched.
        budget: Most stored parameters.
        has_layers: Whether the backbone has layers of the kinds that are chosen from.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error says the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """
    fitted = partial(Fitting, shape=shape, options=options, budget=budget)
    costs = {part: some for part in parts if (some := _costs(part, shape, options))}
    if not costs or not has_layers:
        has_forms = bool(options.attention_forms or options.ffn_forms)
        if not has_forms and any(point.settings for point in options.published_points):
            return fitted(points={}, placements={}, most=_share_of(budget, options, 1), is_everywhere=True)
        raise SearchSpaceError(
            "the study must leave something to search; got no form at attention or FFN that is valid on "
            f"{shape.family}{' and can be merged' if options.mergeable else ''}. "
            f"Allow more forms{'' if has_layers else ' and layers'}"
            f"{'' if has_forms else ', or name published points such as lora_qv:r=8'}."
        )
    fitting, together, share = _together(costs, options, budget)
    is_everywhere = all(
        sum(cost.parameters <= share.parameters for cost in some.values()) >= USUAL_SHARE * len(some)
        for some in costs.values()
    )
    if not is_everywhere:
        costs = {part: _at_last_layer(part, some, shape, options) for part, some in costs.items()}
        fitting, together, share = _together(costs, options, budget)
    fitting = {part: some for part, some in fitting.items() if some}
    if not fitting:
        smallest = min(cost.parameters for some in costs.values() for cost in some.values())
        if smallest <= budget:
            raise BudgetError(
                f"the study must allow at least one configuration; got max_extra_flops {options.max_extra_flops:,}, "
                f"within which nothing has at most {budget:,} parameters. Raise one of them."
            )
        raise BudgetError(
            f"the budget must allow at least one configuration; got {budget:,} parameters, and the smallest "
            f"that fits the study has {smallest:,}. Raise the budget."
        )
    placements = _placements(tuple(fitting), together)
    return fitted(points=fitting, placements=placements, most=share, is_everywhere=is_everywhere)


def _together(
    costs: Mapping[str, Mapping[Point, PointCost]], options: SpaceOptions, budget: int
) -> tuple[dict[str, tuple[Point, ...]], int, PointCost]:
    """The points that fit, as many parts that can be edited together as there can be, and what each may have."""
    for together in range(len(costs), 0, -1):
        share = _share_of(budget, options, together)
        fitting = {
            part: tuple(point for point, cost in some.items() if cost.is_within(share)) for part, some in costs.items()
        }
        if all(fitting.values()):
            break
    return fitting, together, share


def check_limits(configuration: Configuration, shape: BackboneShape, options: SpaceOptions) -> None:
    """Refuse what is beyond the limits of a study, the budget aside.

    Raises:
        BudgetError: If it is.
    """
    if options.mergeable:
        obstacles = unmergeable(configuration, shape)
        for name, why in obstacles.items():
            raise BudgetError(f"the study takes what can be merged into the weights; got {name}: {why}.")
    flops, most = extra_flops(configuration, shape), options.max_extra_flops
    if most is not None and flops > most:
        raise BudgetError(f"this configuration adds {flops:,} FLOPs per token; max_extra_flops is {most:,}.")


def width_step(part: str, options: SpaceOptions) -> int:
    """Smallest width that all edits beside those of a part can have, too."""
    has_products = any(FORMS[name].has_products for name in options.attention_forms)
    has_steps = options.sites == "separate" and part != FFN and has_products
    return max(options.products) if has_steps else 1


def _share_of(budget: int, options: SpaceOptions, together: int) -> PointCost:
    """What each of so many parts may have at its smallest."""
    limit = options.max_extra_flops
    return PointCost(parameters=budget // together, extra_flops=math.inf if limit is None else limit // together)


def _costs(part: str, shape: BackboneShape, options: SpaceOptions) -> dict[Point, PointCost]:
    """The points of a part with their least cost."""
    step = width_step(part, options)
    found = {point: least_cost(point, shape, options, step) for point in points_of(part, shape, options)}
    return {point: cost for point, cost in found.items() if cost is not None}


def _at_last_layer(
    part: str, costs: Mapping[Point, PointCost], shape: BackboneShape, options: SpaceOptions
) -> dict[Point, PointCost]:
    """The points of a part with the parameters that they have at the last layer; limits of FLOPs are those of all."""
    *_, last = fewer(AllLayers(), depth_of(shape))
    step = width_step(part, options)
    found = {point: least_cost(point, shape, options, step, last) or cost for point, cost in costs.items()}
    return {point: replace(cost, parameters=found[point].parameters) for point, cost in costs.items()}


def _placements(parts: tuple[str, ...], together: int) -> dict[str, tuple[str, ...]]:
    """Every set of at most so many parts, the largest first."""
    sizes = range(together, 0, -1)
    sets = [chosen for size in sizes for chosen in combinations(parts, size)]
    return {"both" if chosen == (ATTENTION, FFN) else "+".join(chosen): chosen for chosen in sets}
