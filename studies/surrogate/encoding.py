"""Encoding of the search space: between configurations, their encodings, model features, candidates and parameters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.layers import AllLayers, LayerRange, Layers
from search_space.parameter_counts.budget import SplitCost, UnitCounts, largest_units
from search_space.parameter_counts.counts import count_edits
from search_space.space.layer_choice import every_choice, stack_depth
from search_space.space.points import ATTENTION, FFN, site_of
from search_space.space.product import Point, Structure
from search_space.space.space import Candidate, SearchSpace
from studies.objectives import SizeMeasure
from studies.records import TrialRecord
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, SideFacts
from studies.surrogate.features import (
    Features,
    SideStructure,
    TrainedSide,
    features_of,
    log2_budget_fraction,
    lr_at,
    unit_lr_of,
)
from studies.surrogate.structure_distances import StructureDistances

FILLED = 0.25
"""Least share of the budget of a structure without a size that is proposed as often as those with one."""


class PartStructures:
    """Numbered structures of one part of the model, with the differences between their decisions."""

    def __init__(self, points: Sequence[Point], space: SearchSpace) -> None:
        """Number the structures and the values of every dimension."""
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
        self.filling_forms = self.by_form.keys() - unfilled
        self._nearest: dict[tuple[int, int], list[list[int]]] = {}

    def neighbours(self, number: int, dimension: int) -> list[list[int]]:
        """Return, for every other value of a dimension, the structures with this value that differ least otherwise.

        A dimension that only one of two structures has is not counted as a difference.
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
        """Number of each structure."""
        return {point: number for number, point in enumerate(self.points)}

    @cached_property
    def side_structures(self) -> tuple[SideStructure, ...]:
        """Model features of the structures, in their order."""
        return tuple(SideStructure.of(point.edits) for point in self.points)


class Encoding:
    """Encoding of the configurations of a space."""

    def __init__(self, space: SearchSpace) -> None:
        """Number the structures of every part and list the choices of layers."""
        self.space = space
        self.parts = {part: PartStructures(structures, space) for part, structures in space.structures.items()}
        choices = every_choice(space.layers, stack_depth(space.shape))
        self.layers: Mapping[str, Sequence[Layers]] = {
            name: [one for one in choices if one.name == name] for name in space.layers
        }
        self._legal_parts = {frozenset(parts) for parts in space.placements.values()}
        self._facts: dict[tuple[tuple[tuple[str, int], ...], Layers], SideFacts] = {}
        self._fitted_layers: dict[tuple[tuple[tuple[tuple[str, int], ...], Layers], ...], Mapping[str, Layers]] = {}
        self._empty_cost = SplitCost.of((), {}, space.shape)

    def facts(self, side: EncodedSide) -> SideFacts:
        """Return the properties that follow from the parts and layers of a side."""
        key = side.parts, side.layers
        if key not in self._facts:
            structures, layers = self._structures(side).values(), side.layers
            first = tuple(edit for one, *_ in structures for edit in one.at_layers(layers))
            second = tuple(edit for _, *others in structures for one in others for edit in one.at_layers(layers))
            self._facts[key] = SideFacts.of(first, second, self.space.shape, self.space.options.rank)
        return self._facts[key]

    def _structures(self, *sides: EncodedSide) -> dict[str, Structure]:
        """Return the structure of every part: one point, or two for two edits."""
        structures: dict[str, Structure] = {}
        for side in sides:
            for part, number in side.parts:
                structures[part] = (*structures.get(part, ()), self.parts[part].points[number])
        return structures

    def is_legal(self, encoded: EncodedConfiguration) -> bool:
        """Return whether the parts may be edited together, and the edits of each part with one another."""
        if frozenset(part for side in encoded.sides for part, _ in side.parts) not in self._legal_parts:
            return False
        return all(
            self.is_legal_pair(part, number, other)
            for side in encoded.sides
            for (part, number), (following, other) in pairwise(side.parts)
            if part == following
        )

    def is_legal_pair(self, part: str, one: int, other: int) -> bool:
        """Return whether two structures of a part may be combined."""
        points = self.parts[part].points
        return part in self.space.pairs and self.space.pairs[part].are_legal(points[one], points[other])

    def with_parts(self, side: EncodedSide, parts: Sequence[tuple[str, int]]) -> EncodedSide:
        """Return the side with other structures; two of one part are put in order, and the split with them."""
        names = list(dict.fromkeys(part for part, _ in parts))
        ordered = tuple(sorted(parts, key=lambda one: (names.index(one[0]), one[1])))
        split = side.split if ordered == tuple(parts) else 1 - side.split
        return replace(side, parts=ordered, split=split)

    def uses_budget(self, encoded: EncodedConfiguration) -> bool:
        """Return whether a side has a size, or takes at least `FILLED` of the budget without one."""
        facts = [self.facts(side) for side in encoded.sides]
        return any(one.is_sized or one.cost.min_cost >= FILLED * self.space.budget for one in facts)

    def shares_budget(self, encoded: EncodedConfiguration) -> bool:
        """Return whether both sides have a size."""
        return len(encoded.sides) > 1 and all(self.facts(side).is_sized for side in encoded.sides)

    def normalized(self, encoded: EncodedConfiguration) -> EncodedConfiguration:
        """Return an equal encoding with numbers clipped to the ranges of the space and one learning rate per form."""
        low, high = self.space.options.attention_share
        share = min(max(encoded.attention_share, low), high)
        attention, ffn = encoded.attention, encoded.ffn
        if self.space.pairs:
            attention, ffn = (None if side is None else self._split(side) for side in (attention, ffn))
        if attention is not None and ffn is not None:
            one, other = self.facts(attention), self.facts(ffn)
            if one.form == other.form:
                ffn = replace(ffn, unit_lr=attention.unit_lr)
        return EncodedConfiguration(attention, ffn, share, self._budget_fraction(encoded))

    def with_unit_lrs(self, encoded: EncodedConfiguration, unit_lrs: Mapping[str, float]) -> EncodedConfiguration:
        """Return the encoding with other learning rates of some forms."""
        attention, ffn = (
            None if side is None else replace(side, unit_lr=unit_lrs.get(self.facts(side).form, side.unit_lr))
            for side in (encoded.attention, encoded.ffn)
        )
        return replace(encoded, attention=attention, ffn=ffn)

    def _budget_fraction(self, encoded: EncodedConfiguration) -> float:
        """Return the size clipped to the range of the space; the largest where no side has a size."""
        low, high = self.space.options.budget_fractions
        is_sized = low < high and any(self.facts(side).is_sized for side in encoded.sides)
        return min(max(encoded.budget_fraction, low), high) if is_sized else high

    def _split(self, side: EncodedSide) -> EncodedSide:
        """Return the side with its split clipped to the range of the space; one half without a split."""
        low, high = self.space.options.split
        split = min(max(side.split, low), high) if self.facts(side).is_split else 0.5
        return replace(side, split=split)

    def features(self, encoded: EncodedConfiguration) -> Features:
        """Return the model features of an encoded configuration."""
        attention, ffn = (
            None if side is None else self._trained_side(side, cost, used)
            for side, cost, used in self._sized_sides(encoded)
        )
        return attention, ffn

    def _trained_side(self, side: EncodedSide, cost: SplitCost, used: UnitCounts) -> TrainedSide:
        fact = self.facts(side)
        stored = cost.cost(used) + sum(n**3 for n in fact.products)
        structure = fact.structure
        if fact.is_mixed:  # the widths are among its properties
            structure = SideStructure.of(Configuration(edits=fact.edits).with_widths(cost.widths(used)).edits)
        return TrainedSide(structure, side.unit_lr, log2_budget_fraction(stored, self.space.budget))

    def _sized_sides(self, encoded: EncodedConfiguration) -> list[tuple[EncodedSide | None, SplitCost, UnitCounts]]:
        """Return each side with its cost and its number of units."""
        sides = self._at_layers_that_fit(encoded)
        costs = [self._empty_cost if side is None else self.facts(side).cost_at(side.split) for side in sides]
        is_sized = sides[0] is not None and self.facts(sides[0]).is_sized
        products = frozenset[int]().union(*(self.facts(side).products for side in sides if side is not None))
        share = encoded.attention_share if self.shares_budget(encoded) else float(is_sized)
        both = SplitCost(first=costs[0], second=costs[1], share=share)
        shared = sum(n**3 for n in products)
        whole, power = both.size_scale(self.space.budget, shared, self.space.options.rank)
        own = math.floor(encoded.budget_fraction**power * whole) - shared
        return list(zip(sides, costs, largest_units(both, own, self.space.options.max_extra_flops), strict=True))

    def _at_layers_that_fit(self, encoded: EncodedConfiguration) -> tuple[EncodedSide | None, EncodedSide | None]:
        """Return both sides at the layers that the space proposes: fewer of them where all do not fit the budget."""
        if self.space.fitting.fits_all_layers:
            return encoded.attention, encoded.ffn
        key = tuple((side.parts, side.layers) for side in encoded.sides)
        if key not in self._fitted_layers:
            layers = {name: side.layers for name, side in encoded.by_name.items()}
            self._fitted_layers[key] = self.space.fitting.layers(self._structures(*encoded.sides), layers)
        sides = {name: replace(side, layers=self._fitted_layers[key][name]) for name, side in encoded.by_name.items()}
        return sides.get(ATTENTION), sides.get(FFN)

    def size(self, encoded: EncodedConfiguration, measure: SizeMeasure) -> int:
        """Return the extra FLOPs per token or the stored parameters, without parameters shared by both sides."""
        is_flops = measure is SizeMeasure.EXTRA_FLOPS
        return sum(cost.flops(used) if is_flops else cost.cost(used) for _, cost, used in self._sized_sides(encoded))

    def features_of(self, trial: TrialRecord | Candidate) -> Features:
        """Return the model features of a trial or a candidate."""

        def position_of(edits: Sequence[Edit], peak_lr: float) -> float:
            return unit_lr_of(peak_lr, *self.space.peak_lr_range(edits))

        return features_of(trial, self.space.budget, position_of)

    def candidate(self, encoded: EncodedConfiguration) -> Candidate:
        """Return the candidate that the space suggests for an encoded configuration.

        Raises:
            ValueError: If the configuration is not in the space, which draws and mutations always are.
        """
        sides = encoded.by_name.items()
        ranges = {name: self.space.peak_lr_range(self.facts(side).edits) for name, side in sides}
        candidate = self.space.candidate_of(
            self._structures(*encoded.sides),
            peak_lrs={name: lr_at(side.unit_lr, *ranges[name]) for name, side in sides},
            share=encoded.attention_share,
            layers={name: side.layers for name, side in sides},
            splits={name: side.split for name, side in sides},
            budget_fraction=encoded.budget_fraction,
        )
        if candidate is None:
            raise ValueError(f"the configuration must be in the space; got {encoded}.")
        return candidate

    def published_candidate(self, method: str, features: Features) -> Candidate:
        """Return a published method at the learning rates of some features."""
        parameters: dict[str, str | float] = {}
        for side in features:
            if side is not None:
                for form in side.structure.form:
                    normalized_lr = lr_at(side.unit_lr, *self.space.options.learning_rates[form])
                    parameters.setdefault(f"learning_rate.{form}", normalized_lr)
        return self.space.suggest_published(method, parameters)

    def encode(self, trial: TrialRecord) -> EncodedConfiguration | None:
        """Return the nearest configuration of the space; None if no edit has a form of the space."""
        configuration = trial.configuration
        attention = self._encode_side(configuration.attention, trial.attention_learning_rate, is_ffn=False)
        ffn = self._encode_side(configuration.ffn, trial.ffn_learning_rate, is_ffn=True)
        stored = max(1, count_edits(configuration.edits, self.space.shape).stored)
        share = count_edits(configuration.attention, self.space.shape).stored / stored
        splits = self.space.splits_of(configuration)
        attention, ffn = (
            None if side is None else replace(side, split=splits.get(name, 0.5))
            for name, side in ((ATTENTION, attention), (FFN, ffn))
        )
        fraction = self.space.budget_fraction_of(stored, configuration)
        encoded = self.normalized(EncodedConfiguration(attention, ffn, share, fraction))
        return encoded if encoded.sides and self.is_legal(encoded) else None

    def _encode_side(self, edits: tuple[Edit, ...], peak_lr: float | None, *, is_ffn: bool) -> EncodedSide | None:
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
        return EncodedSide(tuple(numbers), self._nearest_layers(edits[0].layers), unit_lr)

    def _nearest_layers(self, layers: Layers) -> Layers:
        """Return the choice of layers, or the nearest one of the space to all layers."""
        if layers in self.layers.get(layers.name, ()):
            return layers
        if AllLayers.name in self.layers:
            return AllLayers()
        if LayerRange.name in self.layers:
            return LayerRange(first=0, last=stack_depth(self.space.shape) - 1)
        return [*self.layers.values()][-1][-1]

    def _numbers(self, part: str, edits: tuple[Edit, ...]) -> list[int]:
        """Return the numbers of one or two structures equal or nearest to some edits; empty if no form matches."""
        pairs = self.space.pairs.get(part)
        found = {} if pairs is None else self.space.questions[part].match(edits)
        if pairs is None or len(edits) < 2 or len(found) == 1:
            number = self._number(part, edits)
            return [] if number is None else [number]
        halves = tuple(found.values()) or (edits[:1], edits[1:])
        numbers = [number for half in halves if (number := self._number(part, half)) is not None]
        points = [self.parts[part].points[number] for number in numbers]
        return numbers if len(points) == 2 and pairs.are_legal(points[0], points[1]) else numbers[:1]

    def _number(self, part: str, edits: tuple[Edit, ...]) -> int | None:
        """Return the number of the structure equal or nearest to some edits; None if no form matches."""
        found = self.space.questions[part].find(edits)
        structures = self.parts[part]
        if found is not None:
            return structures.numbers[found]
        ours = replace(SideStructure.of(edits), layers=frozenset())
        if not ours.form & set(structures.by_form):
            return None
        known = StructureDistances()
        left = np.array([known.number(ours)])
        right = np.array([known.number(other) for other in structures.side_structures])
        return int(np.argmin(known.distances(left, right).sum(axis=0)[0]))


def _is_at(edit: Edit, part: str) -> bool:
    """Return whether an edit is at a part; norms of the stack and edits outside the blocks are at none."""
    if part == FFN:
        return edit.site is Site.FFN
    return edit.site.is_attention and (part == ATTENTION or edit.site in (Site.ATTENTION, site_of(part)))
