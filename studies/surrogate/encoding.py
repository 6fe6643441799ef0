"""The search space as moves need it: configurations to genes, genes to views, candidates and Optuna's parameters."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.layers import AllLayers, LayerRange, Layers
from search_space.parameter_counts.budget import SplitCost, Units, largest_units
from search_space.parameter_counts.counts import count_edits, shared_count
from search_space.space.layer_choice import depth_of, every_choice
from search_space.space.points import ATTENTION, FFN, site_of
from search_space.space.product import Point, Structure
from search_space.space.space import Candidate, SearchSpace
from studies.objectives import SizeMeasure
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, SideFacts
from studies.surrogate.features import (
    Features,
    SideStructure,
    TrainedSide,
    is_mixed,
    log2_budget_fraction,
    lr_at,
    unit_lr_of,
    with_share,
)
from studies.surrogate.observation import Observation
from studies.surrogate.structure_distances import StructureDistances

FILLED = 0.25
"""Least share of the budget that a structure without a size must take to be proposed like one that has one."""


class PartStructures:
    """The structures of one part by number, and how their decisions differ."""

    def __init__(self, points: Sequence[Point], space: SearchSpace) -> None:
        """Number the values of every dimension."""
        self.points = tuple(points)
        self.dimensions = tuple(dict.fromkeys(name for point in points for name, _ in point.path))
        self.by_form: dict[str, list[int]] = {}
        unfilled: set[str] = set()
        values: dict[str, dict[str, int]] = {name: {} for name in self.dimensions}
        self.codes = np.full((len(self.points), len(self.dimensions)), -1)
        for number, point in enumerate(self.points):
            form = point.edits[0].form.name
            self.by_form.setdefault(form, []).append(number)
            is_sized = any(edit.sized_form is not None for edit in point.edits)
            if not is_sized and count_edits(point.edits, space.shape).stored < FILLED * space.budget:
                unfilled.add(form)
            for name, value in point.path:
                code = values[name].setdefault(value, len(values[name]))
                self.codes[number, self.dimensions.index(name)] = code
        self.filling = self.by_form.keys() - unfilled
        self._nearest: dict[tuple[int, int], list[list[int]]] = {}

    def neighbours(self, number: int, dimension: int) -> list[list[int]]:
        """For every other value of a dimension, the structures that have it and differ least else.

        What only one of two structures has is no difference.
        """
        known = self._nearest.get((number, dimension))
        if known is not None:
            return known
        own, column = self.codes[number], self.codes[:, dimension]
        differences = ((self.codes != own) & (self.codes != -1) & (own != -1)).sum(axis=1)
        found: list[list[int]] = []
        for code in np.unique(column):
            if -1 in (code, own[dimension]) or code == own[dimension]:
                continue
            having = np.flatnonzero(column == code)
            least = differences[having]
            found.append([int(one) for one in having[least == least.min()]])
        self._nearest[number, dimension] = found
        return found

    @cached_property
    def numbers(self) -> dict[Point, int]:
        """Of the structures."""
        return {point: number for number, point in enumerate(self.points)}

    @cached_property
    def seen(self) -> tuple[SideStructure, ...]:
        """The structures as the model sees them."""
        return tuple(SideStructure.of(point.edits) for point in self.points)


class Encoding:
    """Between a space and the genes of its configurations."""

    def __init__(self, space: SearchSpace) -> None:
        """Number the structures of every part."""
        self.space = space
        self.parts = {part: PartStructures(structures, space) for part, structures in space.structures.items()}
        choices = every_choice(space.layers, depth_of(space.shape))
        self.layers: Mapping[str, Sequence[Layers]] = {
            name: [one for one in choices if one.name == name] for name in space.layers
        }
        self._placed = {frozenset(parts) for parts in space.placements.values()}
        self._facts: dict[tuple[tuple[tuple[str, int], ...], Layers], SideFacts] = {}
        self._layers: dict[tuple[tuple[tuple[tuple[str, int], ...], Layers], ...], Mapping[str, Layers]] = {}
        self._nothing = SplitCost.of((), {}, space.shape)

    def facts(self, side: EncodedSide) -> SideFacts:
        """What follows from the parts and layers of a side."""
        key = side.parts, side.layers
        if key not in self._facts:
            structures, layers = self._structures(side).values(), side.layers
            first = tuple(edit for one, *_ in structures for edit in one.at_layers(layers))
            second = tuple(edit for _, *others in structures for one in others for edit in one.at_layers(layers))
            self._facts[key] = SideFacts.of(first, second, self.space.shape)
        return self._facts[key]

    def _structures(self, *sides: EncodedSide) -> dict[str, Structure]:
        """What every part has: a point, or two if it has two edits."""
        found: dict[str, Structure] = {}
        for side in sides:
            for part, number in side.parts:
                found[part] = (*found.get(part, ()), self.parts[part].points[number])
        return found

    def is_placed(self, genes: EncodedConfiguration) -> bool:
        """Whether the parts may be edited together, and the edits of each part."""
        if frozenset(part for side in genes.sides for part, _ in side.parts) not in self._placed:
            return False
        return all(
            self.is_pair(part, number, other)
            for side in genes.sides
            for (part, number), (following, other) in pairwise(side.parts)
            if part == following
        )

    def is_pair(self, part: str, one: int, other: int) -> bool:
        """Whether two structures of a part may go together."""
        points = self.parts[part].points
        return part in self.space.pairs and self.space.pairs[part].are_legal(points[one], points[other])

    def with_parts(self, side: EncodedSide, parts: Sequence[tuple[str, int]]) -> EncodedSide:
        """A side with other structures; where a part has two, they are put in their order, and the split turned."""
        names = list(dict.fromkeys(part for part, _ in parts))
        ordered = tuple(sorted(parts, key=lambda one: (names.index(one[0]), one[1])))
        split = side.split if ordered == tuple(parts) else 1 - side.split
        return replace(side, parts=ordered, split=split)

    def is_filling(self, genes: EncodedConfiguration) -> bool:
        """Whether a side uses what budget there is: it has something to size, or takes enough without."""
        facts = [self.facts(side) for side in genes.sides]
        return any(one.is_sized or one.cost.least_cost >= FILLED * self.space.budget for one in facts)

    def is_shared(self, genes: EncodedConfiguration) -> bool:
        """Whether both sides have something to size."""
        return len(genes.sides) > 1 and all(self.facts(side).is_sized for side in genes.sides)

    def settled(self, genes: EncodedConfiguration) -> EncodedConfiguration:
        """Genes that mean the same, with what the space ties together tied: one form has one rate."""
        low, high = self.space.options.attention_share
        share = min(max(genes.attention_share, low), high)
        attention, ffn = genes.attention, genes.ffn
        if self.space.pairs:
            attention, ffn = (None if side is None else self._split(side) for side in (attention, ffn))
        if attention is not None and ffn is not None:
            one, other = self.facts(attention), self.facts(ffn)
            if one.form == other.form:
                ffn = replace(ffn, unit_lr=attention.unit_lr)
        return EncodedConfiguration(attention, ffn, share, self._budget_fraction(genes))

    def rated(self, genes: EncodedConfiguration, unit_lrs: Mapping[str, float]) -> EncodedConfiguration:
        """The same with other rates of some forms."""
        attention, ffn = (
            None if side is None else replace(side, unit_lr=unit_lrs.get(self.facts(side).form, side.unit_lr))
            for side in (genes.attention, genes.ffn)
        )
        return replace(genes, attention=attention, ffn=ffn)

    def _budget_fraction(self, genes: EncodedConfiguration) -> float:
        """The size in the range of the space, the largest where there is nothing to size."""
        low, high = self.space.options.budget_fractions
        is_sized = low < high and any(self.facts(side).is_sized for side in genes.sides)
        return min(max(genes.budget_fraction, low), high) if is_sized else high

    def _split(self, side: EncodedSide) -> EncodedSide:
        """The side with a split in the range of the space, where it has one; a half elsewhere."""
        low, high = self.space.options.split
        split = min(max(side.split, low), high) if self.facts(side).is_split else 0.5
        return replace(side, split=split)

    def view(self, genes: EncodedConfiguration) -> Features:
        """What the model sees of them."""
        attention, ffn = (
            None if side is None else self._trained(side, cost, used) for side, cost, used in self._spent(genes)
        )
        return attention, ffn

    def _trained(self, side: EncodedSide, cost: SplitCost, used: Units) -> TrainedSide:
        fact = self.facts(side)
        stored = cost.cost(used) + sum(n**3 for n in fact.products)
        halves = cost.first.cost(used[0]), cost.second.cost(used[1])
        structure = with_share(fact.structure, dict(zip(fact.mixed, halves, strict=False)))
        return TrainedSide(structure, side.unit_lr, log2_budget_fraction(stored, self.space.budget))

    def _spent(self, genes: EncodedConfiguration) -> list[tuple[EncodedSide | None, SplitCost, Units]]:
        """Both sides, what they cost, and how many units of it they have."""
        sides = self._at_layers_that_fit(genes)
        costs = [self._nothing if side is None else self.facts(side).cost_at(side.split) for side in sides]
        is_sized = sides[0] is not None and self.facts(sides[0]).is_sized
        products = frozenset[int]().union(*(self.facts(side).products for side in sides if side is not None))
        share = genes.attention_share if self.is_shared(genes) else float(is_sized)
        both = SplitCost(first=costs[0], second=costs[1], share=share)
        own = math.floor(genes.budget_fraction * self.space.budget) - sum(n**3 for n in products)
        return list(zip(sides, costs, largest_units(both, own, self.space.options.max_extra_flops), strict=True))

    def _at_layers_that_fit(self, genes: EncodedConfiguration) -> tuple[EncodedSide | None, EncodedSide | None]:
        """Both sides as the space proposes them together: where they do not fit the budget, at fewer layers."""
        if self.space.fitting.is_everywhere:
            return genes.attention, genes.ffn
        key = tuple((side.parts, side.layers) for side in genes.sides)
        if key not in self._layers:
            layers = {name: side.layers for name, side in genes.by_name.items()}
            self._layers[key] = self.space.fitting.layers(self._structures(*genes.sides), layers)
        sides = {name: replace(side, layers=self._layers[key][name]) for name, side in genes.by_name.items()}
        return sides.get(ATTENTION), sides.get(FFN)

    def size(self, genes: EncodedConfiguration, measure: SizeMeasure) -> int:
        """FLOPs per token that they add, or parameters that they store, what both sides have in common aside."""
        is_flops = measure is SizeMeasure.EXTRA_FLOPS
        return sum(cost.flops(used) if is_flops else cost.cost(used) for _, cost, used in self._spent(genes))

    def view_of(self, trial: Observation | Candidate) -> Features:
        """What the model sees of a trial."""
        attention = self._side_view(trial.configuration.attention, trial.attention_learning_rate)
        return attention, self._side_view(trial.configuration.ffn, trial.ffn_learning_rate)

    def _side_view(self, edits: tuple[Edit, ...], peak_lr: float | None) -> TrainedSide | None:
        if not edits or peak_lr is None:
            return None
        stored = count_edits(edits, self.space.shape).stored
        unit_lr = unit_lr_of(peak_lr, *self.space.peak_lr_range(edits))
        structure = with_share(SideStructure.of(edits), self._stored_by_form(edits) if is_mixed(edits) else {})
        return TrainedSide(structure, unit_lr, log2_budget_fraction(stored, self.space.budget))

    def _stored_by_form(self, edits: tuple[Edit, ...]) -> dict[str, int]:
        """What the edits of every form store, what several have in common aside."""
        stored: Counter[str] = Counter()
        for edit in edits:
            stored[edit.form.name] += count_edits((edit,), self.space.shape).stored - shared_count((edit,))
        return stored

    def candidate(self, genes: EncodedConfiguration) -> Candidate:
        """The configuration within the budget, as the space suggests it.

        Raises:
            ValueError: If the genes are none of the space, which those of draws and moves are.
        """
        sides = genes.by_name.items()
        ranges = {name: self.space.peak_lr_range(self.facts(side).edits) for name, side in sides}
        parameters = self.space.answers(
            self._structures(*genes.sides),
            peak_lrs={name: lr_at(side.unit_lr, *ranges[name]) for name, side in sides},
            share=genes.attention_share,
            layers={name: side.layers for name, side in sides},
            splits={name: side.split for name, side in sides},
            budget_fraction=genes.budget_fraction,
        )
        if parameters is None:
            raise ValueError(f"genes must be of the space; got {genes}.")
        return self.space.suggest(parameters)

    def published(self, method: str, view: Features) -> Candidate:
        """A published method with the rates of a view of it."""
        told: dict[str, str | float] = {}
        for side in view:
            if side is not None:
                for form in side.structure.form:
                    normalized_lr = lr_at(side.unit_lr, *self.space.options.learning_rates[form])
                    told.setdefault(f"learning_rate.{form}", normalized_lr)
        return self.space.suggest_published(method, told)

    def genes_of(self, observation: Observation) -> EncodedConfiguration | None:
        """The nearest configuration of the space; None if no edit of the trial has a form that is searched."""
        configuration = observation.configuration
        attention = self._side_genes(configuration.attention, observation.attention_learning_rate, is_ffn=False)
        ffn = self._side_genes(configuration.ffn, observation.ffn_learning_rate, is_ffn=True)
        stored = max(1, count_edits(configuration.edits, self.space.shape).stored)
        share = count_edits(configuration.attention, self.space.shape).stored / stored
        splits = self.space.splits_of(configuration)
        attention, ffn = (
            None if side is None else replace(side, split=splits.get(name, 0.5))
            for name, side in ((ATTENTION, attention), (FFN, ffn))
        )
        genes = self.settled(EncodedConfiguration(attention, ffn, share, self.space.budget_fraction_of(stored)))
        return genes if genes.sides and self.is_placed(genes) else None

    def _side_genes(self, edits: tuple[Edit, ...], peak_lr: float | None, *, is_ffn: bool) -> EncodedSide | None:
        if peak_lr is None:
            return None
        numbers: list[tuple[str, int]] = []
        for part in self.parts:
            here = [edit for edit in edits if _is_at(edit, part)] if (part == FFN) is is_ffn else []
            if here:
                found = self._numbers(part, tuple(replace(edit, site=site_of(part)) for edit in here))
                if not found:
                    return None
                numbers += [(part, number) for number in sorted(found)]
        if not numbers:
            return None
        unit_lr = min(max(unit_lr_of(peak_lr, *self.space.peak_lr_range(edits)), -1.0), 1.0)
        return EncodedSide(tuple(numbers), self._known_layers(edits[0].layers), unit_lr)

    def _known_layers(self, layers: Layers) -> Layers:
        """The choice of layers, or the one that is nearest to all of them."""
        if layers in self.layers.get(layers.name, ()):
            return layers
        if AllLayers.name in self.layers:
            return AllLayers()
        if LayerRange.name in self.layers:
            return LayerRange(first=0, last=depth_of(self.space.shape) - 1)
        return [*self.layers.values()][-1][-1]

    def _numbers(self, part: str, edits: tuple[Edit, ...]) -> list[int]:
        """The structure that some edits are, or two, or the nearest; none if none has a form of theirs."""
        pairs = self.space.pairs.get(part)
        found = {} if pairs is None else self.space.questions[part].matched(edits)
        if pairs is None or len(edits) < 2 or len(found) == 1:
            number = self._number(part, edits)
            return [] if number is None else [number]
        halves = tuple(found.values()) or (edits[:1], edits[1:])
        numbers = [number for half in halves if (number := self._number(part, half)) is not None]
        points = [self.parts[part].points[number] for number in numbers]
        return numbers if len(points) == 2 and pairs.are_legal(points[0], points[1]) else numbers[:1]

    def _number(self, part: str, edits: tuple[Edit, ...]) -> int | None:
        """The structure that some edits are, or the nearest; None if none has a form of theirs."""
        found = self.space.questions[part].find(edits)
        structures = self.parts[part]
        if found is not None:
            return structures.numbers[found]
        ours = replace(SideStructure.of(edits), layers=frozenset())
        if not ours.form & set(structures.by_form):
            return None
        known = StructureDistances()
        left = np.array([known.number(ours)])
        right = np.array([known.number(other) for other in structures.seen])
        return int(np.argmin(known.distances(left, right).sum(axis=0)[0]))


def _is_at(edit: Edit, part: str) -> bool:
    """Whether an edit is at a part; the norms of the stack and what is outside the blocks are at none."""
    if part == FFN:
        return edit.site is Site.FFN
    return edit.site.is_attention and (part == ATTENTION or edit.site in (Site.ATTENTION, site_of(part)))
