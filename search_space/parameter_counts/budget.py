"""Budgets, and the solver from structure, share of attention and budget to integer bottlenecks."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from search_space.backbones.shape import MAX_PARAMETERS, BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.errors import BudgetError
from search_space.forms import SizedForm
from search_space.parameter_counts.counts import affine_count, instance_count, shared_parameter_count
from search_space.parameter_counts.flops import affine_flops
from search_space.validity import check_on

RankBounds = tuple[int, int]
"""Least and greatest rank."""

_GROUPED = re.compile(r"[0-9]{1,3}(?:([,_])[0-9]{3})(?:\1[0-9]{3})*")


def read_budget(written: str | int | float, name: str = "budget") -> int | float:
    """Read a budget: ``"0.5%"``, ``600000``, ``"600,000"`` or ``6e5``.

    A bare fraction such as 0.5 is refused, since it may be meant as 0.5% or as 50%. The fraction 1.0 is refused too,
    but 1 is one parameter.

    Args:
        name: Name of the value in errors.

    Returns:
        A number of parameters as an int, a share of the backbone's as a float.

    Raises:
        BudgetError: If it is none of these, or out of range.
    """
    text = "" if isinstance(written, bool) else str(written).strip()
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not percent and _GROUPED.fullmatch(number):
        number = re.sub("[,_]", "", number)
    try:
        value = math.nan if "_" in number else float(number)
    except ValueError:
        value = math.nan
    is_fraction = 0 < value <= 1 and not percent and not number.isdecimal()
    if is_fraction or not math.isfinite(value) or not (percent or value.is_integer()):
        advice = f" Write {number}% or {100 * value:g}%." if is_fraction else ""
        raise BudgetError(
            f"{name} must be a percentage such as 0.5% or a number of parameters; got {written!r}.{advice}"
        )
    budget = value / 100 if percent else int(value)
    budget_parameters(budget, MAX_PARAMETERS)
    return budget


def budget_parameters(budget: int | float, whole: int) -> int:
    """Return a budget as a number of parameters, rounded down.

    Args:
        budget: Budget from `read_budget`.
        whole: Parameters of the backbone.

    Raises:
        BudgetError: If a share is not in (0, 1], or a number is out of range.
    """
    if isinstance(budget, int):
        if not 1 <= budget <= MAX_PARAMETERS:
            raise BudgetError(f"a budget must be from 1 to {MAX_PARAMETERS:,} parameters; got {budget:,}.")
        return budget
    if not 0 < budget <= 1:
        raise BudgetError(f"a budget must be above 0% and at most 100% of the backbone; got {budget:.4%}.")
    return math.floor(round(budget * whole, 6))


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCost:
    """Affine parameter count of the edits at attention, or of all others, as a function of units of width.

    A unit is one row at one sublayer of every sized edit. It is one row at all of them if single sublayers cannot be
    widened (edits at different numbers of sublayers, a reparameterized prefix). If the width of a form grows in larger
    steps, all widths of the side grow by ``step`` rows.

    Attributes:
        edits: Edits of the side, or of a part of it; all have one width.
        intercept: Stored parameters at width 0.
        slope: Stored parameters of one unit.
        sublayers: Units of the smallest widths; 0 without a bottleneck to size.
        step: Rows of a unit.
        min_units: Units of the smallest widths.
        max_units: Units of the largest widths; None if they are unbounded.
        has_rank: Whether bounds of the rank limit the widths.
        fixed_flops: Extra FLOPs per token at inference, at width 0.
        unit_flops: Extra FLOPs per token of one unit.
    """

    edits: tuple[Edit, ...]
    intercept: int
    slope: int
    sublayers: int
    step: int
    min_units: int
    max_units: int | None
    has_rank: bool = False
    fixed_flops: int = 0
    unit_flops: int = 0

    @classmethod
    def of(
        cls, edits: tuple[Edit, ...], shape: BackboneShape, step: int = 1, rank: RankBounds | None = None
    ) -> "SideCost":
        """Compute the cost of the edits of one side, without shared parameters.

        Args:
            step: Smallest width that all edits of the other parts can have, too.
            rank: Bounds of the rank of forms that have one; None for any.
        """
        numbers = {edit: instance_count(edit, shape) for edit in edits}
        sized = {edit: edit.sized_form for edit in edits if edit.sized_form is not None}
        step = math.lcm(step, *(form.width_step for form in sized.values()))
        sublayers = _widenable(sized, numbers)
        bounds = [form.largest_width(edit, shape) for edit, form in sized.items()]
        least = step
        if has_rank := rank is not None and any(form.has_rank for form in sized.values()):
            least, most = rank
            bounds.append(most)
        flops = {edit: affine_flops(edit, shape) for edit in numbers}
        return cls(
            edits=edits,
            intercept=sum(number * affine_count(edit, shape).intercept for edit, number in numbers.items()),
            slope=step * sum(affine_count(edit, shape).slope * numbers[edit] // max(sublayers, 1) for edit in sized),
            sublayers=sublayers,
            step=step,
            min_units=-(-least // step) * sublayers,
            has_rank=has_rank,
            max_units=min((bound // step * sublayers for bound in bounds if bound is not None), default=None),
            fixed_flops=sum(number * flops[edit].weights for edit, number in numbers.items()),
            unit_flops=step * sum(flops[edit].weights_per_width * numbers[edit] // max(sublayers, 1) for edit in sized),
        )

    @property
    def min_cost(self) -> int:
        """Stored parameters with every bottleneck at its smallest."""
        return self.cost(self.min_units)

    @property
    def max_cost(self) -> float:
        """Stored parameters at the upper bound of the rank; infinite without one."""
        return self.cost(self.max_units or 0) if self.has_rank or not self.slope else math.inf

    def units(self, parameters: float) -> int:
        """Return the most units whose cost is at most ``parameters``, at least those of the smallest widths."""
        if not self.slope:
            return 0
        units = max(self.min_units, math.floor((parameters - self.intercept) / self.slope))
        return units if self.max_units is None else min(units, self.max_units)

    def cost(self, units: int) -> int:
        """Return the stored parameters of some units."""
        return self.intercept + self.slope * units

    def flops(self, units: int) -> int:
        """Return the FLOPs per token that some units add at inference."""
        return self.fixed_flops + self.unit_flops * units

    def widths(self, units: int) -> dict[Edit, tuple[int, int]]:
        """Return the width of every edit and its number of widened sublayers; any number without a bottleneck."""
        width, widened = divmod(units, max(self.sublayers, 1))
        return dict.fromkeys(self.edits, (width * self.step, widened))


def _widenable(sized: Mapping[Edit, SizedForm], numbers: Mapping[Edit, int]) -> int:
    """Return the number of units per step of all widths; 0 without edits."""
    counts = {numbers[edit] for edit in sized}
    steps = {form.width_step for form in sized.values()}
    has_one_length = any(form.reparameterization is not None for form in sized.values())
    return 1 if has_one_length or len(counts) > 1 or len(steps) > 1 else max(counts, default=0)


BudgetSplits = Mapping[tuple[Edit, ...], float]
"""Some edits of a side to their share of its stored parameters; the side's other edits get the rest."""

UnitCounts = Any
"""Number of units of a side, or a pair of them for both parts of a split side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitCost:
    """Cost of two groups of edits with separate widths: those of a split side, or both sides.

    Attributes:
        first: Cost of the first edits.
        second: Cost of the others.
        share: Share of the first, in [0, 1]; ignored unless both have a bottleneck to size.

    Raises:
        BudgetError: If the share is out of range.
    """

    first: "SideCost | SplitCost"
    second: "SideCost | SplitCost"
    share: float = 1.0

    def __post_init__(self) -> None:
        """Check the range."""
        if not 0 <= self.share <= 1:
            raise BudgetError(f"the split of a side must be in [0, 1]; got {self.share}.")

    @classmethod
    def of(
        cls, edits: tuple[Edit, ...], splits: BudgetSplits, shape: BackboneShape, rank: RankBounds | None = None
    ) -> "SplitCost":
        """Compute the cost of a side's edits, split if a split contains some of them; else the second part is empty."""
        for chosen, share in splits.items():
            first = tuple(edit for edit in edits if edit in chosen)
            if 0 < len(first) < len(edits):
                others = tuple(edit for edit in edits if edit not in chosen)
                return cls(
                    first=SideCost.of(first, shape, rank=rank),
                    second=SideCost.of(others, shape, rank=rank),
                    share=share,
                )
        return cls(first=SideCost.of(edits, shape, rank=rank), second=SideCost.of((), shape))

    @property
    def min_cost(self) -> int:
        """Stored parameters with every bottleneck at its smallest."""
        return self.first.min_cost + self.second.min_cost

    @property
    def max_cost(self) -> float:
        """Stored parameters at the upper bound of the rank; infinite without one."""
        return self.first.max_cost + self.second.max_cost

    def size_scale(self, parameters: int, shared: int, rank: RankBounds | None) -> tuple[int, float]:
        """Return the size at a share of 1, and the power of a share that is its factor at others.

        The size is the budget, and the power 1, unless bounds of the rank apply. Then shares begin at the ratio of the
        bounds. They are stretched from the size at the lower bound to that at the upper one, or to the budget.

        Args:
            parameters: Budget of stored parameters.
            shared: Number of shared ones among them.
            rank: Bounds of the rank of forms that have one; None for any.
        """
        if rank is None or math.isinf(self.max_cost):
            return parameters, 1
        whole, least = min(parameters, int(self.max_cost) + shared), max(1, self.min_cost + shared)
        is_fixed = rank[0] == rank[1] or least >= whole
        return max(1, whole), 1 if is_fixed else math.log(least / whole) / math.log(rank[0] / rank[1])

    def units(self, parameters: float) -> tuple[UnitCounts, UnitCounts]:
        """Return the most units of both whose cost is at most ``parameters``, at least the smallest."""
        total = max(self.min_cost, math.floor(parameters))
        target = min(max(self.share * total, self.first.min_cost), total - self.second.min_cost)
        units: UnitCounts = self.first.units(target)
        others: UnitCounts = self.second.units(total - self.first.cost(units))
        return self.first.units(total - self.second.cost(others)), others

    def cost(self, units: UnitCounts) -> int:
        """Return the stored parameters of some units."""
        return self.first.cost(units[0]) + self.second.cost(units[1])

    def flops(self, units: UnitCounts) -> int:
        """Return the FLOPs per token that some units add at inference."""
        return self.first.flops(units[0]) + self.second.flops(units[1])

    def widths(self, units: UnitCounts) -> dict[Edit, tuple[int, int]]:
        """Return the width of every edit and its number of widened sublayers."""
        return self.first.widths(units[0]) | self.second.widths(units[1])


def largest_units(both: SplitCost, parameters: int, extra_flops: int | None) -> UnitCounts:
    """Return the units of two groups of edits that use most of the limits, at least the smallest of each.

    Args:
        both: Cost of both groups.
        parameters: Most stored parameters, shared ones aside.
        extra_flops: Most extra FLOPs per token at inference; None for any number.
    """

    def fits(units: UnitCounts) -> bool:
        return extra_flops is None or both.flops(units) <= extra_flops

    least = both.min_cost
    most = max(least, parameters)
    wanted = both.units(most)
    if fits(wanted):
        return wanted
    while most - least > 1:
        middle = (most + least) // 2
        least, most = (middle, most) if fits(both.units(middle)) else (least, middle)
    return both.units(least)


def share_of_size(
    structure: Configuration, shape: BackboneShape, stored: int, parameters: int, rank: RankBounds
) -> float:
    """Return the share of the budget at which a structure stores some parameters; see `SplitCost.size_scale`."""
    attention, ffn = (SplitCost.of(edits, {}, shape, rank) for edits in (structure.attention, structure.ffn))
    shared = shared_parameter_count(structure.edits)
    whole, power = SplitCost(first=attention, second=ffn).size_scale(parameters, shared, rank)
    return math.pow(stored / whole, 1 / power)


def solve(  # noqa: PLR0913
    structure: Configuration,
    shape: BackboneShape,
    *,
    attention_share: float,
    parameters: int,
    budget_fraction: float = 1.0,
    splits: BudgetSplits = MappingProxyType({}),
    extra_flops: int | None = None,
    rank: RankBounds | None = None,
) -> Configuration:
    """Return the structure with the largest bottlenecks that the budget allows.

    Attention gets its share, the FFN the rest, and attention again the remainder of the FFN's last step. A split side
    divides its budget in the same way. Units that are too few for every sublayer widen the sublayers nearest the output
    by one. The result stores at most ``parameters``.

    Args:
        structure: Configuration whose widths are ignored.
        attention_share: Share of the budget for attention, in [0, 1]; ignored if one side has no bottleneck to size.
        parameters: Budget; the smallest bottlenecks must fit it.
        budget_fraction: Used share of the budget, in (0, 1]; the smallest bottlenecks may use more of it. With bounds
            of the rank, the ratio of the rank to the upper one; see `SplitCost.size_scale`.
        splits: Splits of a side's budget between its edits, at most one per side; without one all edits of a side have
            one width.
        extra_flops: Most extra FLOPs per token at inference, beyond those of the smallest bottlenecks; None for any
            number.
        rank: Bounds of the rank of forms that have one; None for any.

    Raises:
        BudgetError: If the structure does not fit with every bottleneck at its smallest; the error names the least
            number. Or if a share or ``extra_flops`` is out of range.
        InvalidEditError: If the structure is not valid on the backbone.
    """
    if not 0 <= attention_share <= 1:
        raise BudgetError(f"the share of attention must be in [0, 1]; got {attention_share}.")
    if not 0 < budget_fraction <= 1:
        raise BudgetError(
            f"the size of a configuration must be a share of the budget in (0, 1]; got {budget_fraction}."
        )
    if extra_flops is not None and extra_flops < 0:
        raise BudgetError(f"the most extra FLOPs must be at least 0; got {extra_flops}.")
    attention, ffn = (SplitCost.of(edits, splits, shape, rank) for edits in (structure.attention, structure.ffn))
    both, shared = (
        SplitCost(first=attention, second=ffn, share=attention_share),
        shared_parameter_count(structure.edits),
    )
    least = both.min_cost + shared
    if least > parameters:
        raise BudgetError(f"this configuration needs at least {least:,} parameters; the budget is {parameters:,}.")
    whole, power = both.size_scale(parameters, shared, rank)
    used = math.floor(budget_fraction**power * whole) - shared
    solved = structure.with_widths(both.widths(largest_units(both, used, extra_flops)))
    check_on(solved.edits, shape)
    return solved
