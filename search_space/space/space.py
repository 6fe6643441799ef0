"""Search space as Optuna parameters: every proposal is a valid configuration within the budget.

The parameters form a tree: placement, form, tensor written, tensor read, composition. The tree contains only points
that can be sized within the budget, so no proposal is ever rejected.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from search_space.backbones.shape import BackboneShape
from search_space.canonical import fingerprint
from search_space.configuration import Configuration
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.errors import SearchSpaceError
from search_space.layers import AllLayers, Layers
from search_space.parameter_counts.budget import share_of_size, solve
from search_space.parameter_counts.counts import Counts, count, count_edits, shared_parameter_count
from search_space.published.point import PublishedPoint
from search_space.space.budget_fit import BudgetFit
from search_space.space.layer_choice import available_layers, layer_parameters, stack_depth, suggest_layers
from search_space.space.methods import MethodFit
from search_space.space.options import SpaceOptions
from search_space.space.pairs import StructurePairs
from search_space.space.parameter_table import HEAD_RATE as HEAD_RATE
from search_space.space.parameter_table import (
    LORA_DROPOUT,
    has_input_dropout,
    parameters_of_space,
    side_of,
    sides,
    split_edits,
    split_name,
    unnamed_rates,
)
from search_space.space.parameter_table import METHOD as METHOD
from search_space.space.parameter_table import SIZE as SIZE
from search_space.space.part_space import PartSpace
from search_space.space.points import ATTENTION, FFN, site_of
from search_space.space.product import Point, Structure
from search_space.space.rates import ROUNDING, normalized_lr, peak_lr_range, rate_scaling
from search_space.space.trial_protocol import Parameter, ParameterRecorder, ParameterSource, is_in_domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal: the configuration to train, its learning rates, and its origin.

    Attributes:
        configuration: Valid configuration within the budget.
        attention_learning_rate: Peak rate at attention; None without edits there.
        ffn_learning_rate: Peak rate at the FFN; None without edits there.
        method: Given name of the published method or point; None for points of the search.
        attention_share: Share of the stored parameters at attention, as solved.
        counts: Parameter counts of the configuration.
        fingerprint: Fingerprint of the configuration, its learning rates and its dropout, if that is searched.
        parameters: Suggested search parameters, by name.
        head_learning_rate: Peak rate of the task head; None for the study's own.
    """

    configuration: Configuration
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    method: str | None = None
    attention_share: float
    counts: Counts
    fingerprint: str
    parameters: Mapping[str, str | float] = field(default_factory=dict)
    head_learning_rate: float | None = None

    @classmethod
    def of(
        cls, configuration: Configuration, rates: tuple[float | None, float | None], shape: BackboneShape, **fields: Any
    ) -> Self:
        """Build the candidate of a configuration with its rates at attention and at the FFN, and further fields.

        Raises:
            InvalidEditError: If the configuration is not valid on the backbone.
        """
        counts, head = count(configuration, shape), fields.get("head_learning_rate")
        by_side = {ATTENTION: rates[0], FFN: rates[1]} | ({} if head is None else {"head": head})
        # two significant digits: rates closer than that are the same trial
        rounded = {side: None if rate is None else f"{rate:.1e}" for side, rate in by_side.items()}
        dropout = {name: value for name, value in fields.get("parameters", {}).items() if name == LORA_DROPOUT}
        return cls(
            configuration=configuration,
            attention_learning_rate=rates[0],
            ffn_learning_rate=rates[1],
            attention_share=count_edits(configuration.attention, shape).stored / max(1, counts.stored),
            counts=counts,
            fingerprint=fingerprint(configuration, shape, learning_rates=rounded, **dropout),
            **fields,
        )


class SearchSpace:
    """All four design dimensions, the share of attention and the learning rates, under a budget.

    Attributes:
        shape: Shape of the backbone.
        budget: Most stored parameters.
        options: Options of the space.
        questions: Conditional parameters of each part of the model that can be edited.
        trees: Decision tree of an edit at each part: ``attention`` and ``ffn``, or each kind of attention and ``ffn``.
            Empty if no form is searched and published points are all there is.
        placements: Parts that are edited together, by the name of their choice.
        fitting: Points that fit the budget, and their layers.
        layers: Kinds of layer choices.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error names the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """

    def __init__(self, *, shape: BackboneShape, budget: int, options: SpaceOptions | None = None) -> None:
        """Build the decision trees of the points that fit; without options, of the default ones."""
        self.shape = shape
        self.budget = budget
        self.options = options or SpaceOptions()
        self._methods = MethodFit(shape, self.options, budget=budget)
        self.layers = available_layers(self.options.layers, stack_depth(shape))
        self.fitting = BudgetFit(self.parts, shape, self.options, budget=budget, has_layers=bool(self.layers))
        self.placements = self.fitting.placements
        self.questions = {
            part: PartSpace(part, points, shape, self.options, part_limit=self.fitting.part_limit)
            for part, points in self.fitting.points.items()
        }
        self.trees = {part: part_space.tree for part, part_space in self.questions.items()}
        self._parameters = parameters_of_space(self.questions, self.placements, self.layers, self.options)

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of the model that the options allow to edit, even if no point fits there."""
        if self.options.methods or self.options.sites == "tied":
            return () if self.options.methods else (ATTENTION, FFN)
        kinds = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)
        return (*(kind.value for kind in kinds if self.shape.sublayers(kind)), FFN)

    @property
    def is_searched(self) -> bool:
        """Whether there is anything to propose besides the published methods that are tried first."""
        return bool(self.trees or self.options.methods)

    def parameters(self) -> dict[str, Parameter]:
        """Return every parameter that a proposal may use, by name; equal for all proposals of the space.

        Learning rates of opt-in forms that the study does not name are left out, so that stored studies can continue.
        """
        return {name: values for name, values in self._parameters.items() if name not in self._unnamed_rates}

    @cached_property
    def _unnamed_rates(self) -> set[str]:
        return unnamed_rates(self.shape, self.options)

    def suggest(self, trial: ParameterSource) -> Candidate:
        """Suggest a valid configuration within the budget, with its learning rates.

        Args:
            trial: Trial, or the parameters' values by name. For an Optuna trial whose user attribute ``method`` names a
                published method or point, only learning rates are suggested.

        Raises:
            SearchSpaceError: If the space contains published points only.
        """
        method = getattr(trial, "user_attrs", {}).get(METHOD)
        if method is not None:
            if set_attribute := getattr(trial, "set_user_attr", None):  # a sampler names it to the objective alone
                set_attribute(METHOD, method)
            return self.suggest_published(method, trial)
        if not self.is_searched:
            raise SearchSpaceError("the study must leave something to search; got published methods only.")
        recorder = ParameterRecorder(trial, self._parameters)
        if self.options.methods:
            return self.suggest_published(recorder.choose(METHOD, [*map(str, self.options.methods)]), trial)
        parts = self.placements[recorder.choose("placement", tuple(self.placements))]
        depth = stack_depth(self.shape)
        layer_choices = {side: suggest_layers(side, self.layers, depth, recorder) for side in sides(parts)}
        chosen = {part: self.questions[part].suggest(recorder) for part in parts}
        layers = self.fitting.layers(chosen, layer_choices)
        edits = (edit for part in parts for point in chosen[part] for edit in point.at_layers(layers[side_of(part)]))
        structure = Configuration(edits=tuple(edits))
        share = self._suggest_share(structure, recorder)
        splits = {
            first: recorder.number(split_name(side))
            for side in sides(parts)
            if (first := split_edits(side, chosen, layers[side]))
        }
        solved = solve(
            structure,
            self.shape,
            attention_share=share,
            parameters=self.budget,
            budget_fraction=self._suggest_budget_fraction(structure, recorder),
            splits=splits,
            extra_flops=self.options.max_extra_flops,
            rank=self.options.rank,
        )
        return self._candidate(solved, recorder, method=None)

    def _suggest_budget_fraction(self, structure: Configuration, recorder: ParameterRecorder) -> float:
        """Suggest the share of the budget if there is a bottleneck to size; else return the highest share."""
        is_sized = any(edit.sized_form for edit in structure.edits)
        return recorder.number(SIZE) if SIZE in self._parameters and is_sized else self.options.budget_fractions[1]

    @cached_property
    def structures(self) -> Mapping[str, tuple[Point, ...]]:
        """Structures of one edit at each part of the model that can be edited."""
        return {part: part_space.structures for part, part_space in self.questions.items()}

    @cached_property
    def pairs(self) -> Mapping[str, StructurePairs]:
        """Pairs of structures at each part of the model that can have two edits."""
        return {part: one.pairs for part, one in self.questions.items() if one.pairs is not None}

    def points_in(self, configuration: Configuration) -> dict[str, Structure] | None:
        """Return the structure of every part that a configuration edits, independently of widths and layers.

        Returns:
            None if some part's edits, or the parts together, cannot be proposed.

        Raises:
            InvalidEditError: If the configuration is not valid on the backbone.
        """
        points: dict[str, Structure] = {}
        for part, edits in self._by_part(configuration).items():
            found = self.questions[part].match(edits) if part in self.questions else {}
            if not found:
                return None
            points[part] = tuple(found)
        return points if tuple(points) in self.placements.values() else None

    def _by_part(self, configuration: Configuration) -> dict[str, tuple[Edit, ...]]:
        if self.options.sites == "tied":
            found = {ATTENTION: configuration.attention}
        else:
            found = {
                part: tuple(
                    replace(edit, site=site_of(part))
                    for edit in configuration.attention
                    if edit.site in (Site.ATTENTION, site_of(part))
                )
                for part in self.parts
                if part != FFN
            }
        return {part: edits for part, edits in {**found, FFN: configuration.ffn}.items() if edits}

    def candidate_of(
        self,
        points: Mapping[str, Structure],
        *,
        peak_lrs: Mapping[str, float],
        share: float,
        layers: Mapping[str, Layers] | None = None,
        splits: Mapping[str, float] | None = None,
        budget_fraction: float = 1.0,
    ) -> Candidate | None:
        """Return the candidate that `suggest` proposes with some structures together.

        Args:
            points: Structure of each part that is edited.
            peak_lrs: Peak learning rates of ``attention`` and ``ffn``, if edited.
            share: Share of the budget at attention, if both sides have a bottleneck to size.
            layers: Layer choices at ``attention`` and ``ffn``; all layers by default.
            splits: Share of the first of two edits in the budget of ``attention`` and ``ffn``; half by default.
            budget_fraction: Share of the budget, if sizes are searched.

        Returns:
            None if a parameter is out of range, or the parts cannot be edited together.
        """
        names = {parts: name for name, parts in self.placements.items()}
        parts = tuple(part for part in self.trees if part in points)
        if parts not in names:
            return None
        values: dict[str, str | float] = {"placement": names[parts], "attention_share": share, SIZE: budget_fraction}
        for part in parts:
            values |= self.questions[part].choices_to(points[part])
        for side in sides(parts):
            chosen = layer_parameters(side, self.layers, stack_depth(self.shape), (layers or {}).get(side, AllLayers()))
            if chosen is None:
                return None
            values |= chosen
            values[split_name(side)] = (splits or {}).get(side, 0.5)
            of_side = (point for part in parts if side_of(part) == side for point in points[part])
            edits = tuple(edit for point in of_side for edit in point.edits)
            rate = normalized_lr(edits, peak_lrs[side], self.shape, self.options)
            first = values.setdefault(f"learning_rate.{edits[0].form.name}", rate)
            if not math.isclose(float(first), rate, rel_tol=ROUNDING):
                return None
        candidate = self.suggest(values)
        used = candidate.parameters.items()
        return candidate if all(is_in_domain(self._parameters[name], value) for name, value in used) else None

    def parameters_of(
        self, configuration: Configuration, *, peak_lrs: Mapping[str, float], share: float | None = None
    ) -> dict[str, str | float] | None:
        """Return the parameters with which `suggest` proposes a configuration, resized to the budget, or to its size.

        Args:
            configuration: Configuration, such as that of a published method.
            peak_lrs: Peak learning rates of ``attention`` and ``ffn``, if edited.
            share: Share of the budget at attention; None for the share of the stored parameters.

        Returns:
            None if the configuration cannot be proposed.

        Raises:
            InvalidEditError: If the configuration is not valid on the backbone.
        """
        points = self.points_in(configuration)
        layers = {ATTENTION: {edit.layers for edit in configuration.attention}}
        layers[FFN] = {edit.layers for edit in configuration.ffn}
        if not points or any(len(choices) > 1 for choices in layers.values()):
            return None
        stored = [count_edits(edits, self.shape).stored for edits in (configuration.attention, configuration.ffn)]
        candidate = self.candidate_of(
            points,
            peak_lrs=peak_lrs,
            share=stored[0] / sum(stored) if share is None else share,
            layers={side: next(iter(choices)) for side, choices in layers.items() if choices},
            splits=self.splits_of(configuration),
            budget_fraction=self.budget_fraction_of(sum(stored), configuration),
        )
        return None if candidate is None else dict(candidate.parameters)

    def budget_fraction_of(self, stored: int, structure: Configuration | None = None) -> float:
        """Return the parameters of a structure as a share of the budget, clipped to the range of proposals."""
        low, high = self.options.budget_fractions
        rank, budget = self.options.rank, self.budget
        share = share_of_size(structure, self.shape, stored, budget, rank) if structure and rank else stored / budget
        return min(max(share, low), high)

    def splits_of(self, configuration: Configuration) -> dict[str, float]:
        """Return the share of the first edits in the stored parameters of each side with pairs, without shared ones.

        Shares are clipped to the range: an edit at its smallest or largest size keeps its share.
        """
        if not self.pairs:
            return {}
        low, high = self.options.split
        stored: dict[str, list[int]] = {}
        for part, edits in self._by_part(configuration).items():
            both = stored.setdefault(side_of(part), [0, 0])
            found = self.questions[part].match(edits) if part in self.questions else {}
            for place, half in enumerate(found.values() or (edits,)):
                both[place] += count_edits(half, self.shape).stored - shared_parameter_count(half)
        return {side: min(max(both[0] / sum(both), low), high) for side, both in stored.items() if both[1]}

    def suggest_published(self, name: str, trial: ParameterSource) -> Candidate:
        """Suggest the learning rates of a published method or point; for one of ``methods``, size and scale, too.

        Args:
            name: Name of a method, which is resized to the budget, or of a point with fixed hyper-parameters, such as
                ``lora_qv:s=4``. A point that fixes a size is used unchanged.
            trial: Trial, or the parameters' values by name.

        Raises:
            UnknownMethodError: If there is no such method.
            BudgetError: If it does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        configuration, recorder = self._methods.suggest(PublishedPoint(name), trial, self._parameters)
        return self._candidate(configuration, recorder, method=name)

    def published_that_fit(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the published methods and points that are valid on the backbone and fit the budget.

        Args:
            names: Names of methods and points; None for those of the options.
        """
        points = map(PublishedPoint, self.options.published_points if names is None else names)
        return tuple(filter(self._methods.fits, points))

    def _candidate(self, configuration: Configuration, recorder: ParameterRecorder, *, method: str | None) -> Candidate:
        attention, ffn = (self._peak_lr(edits, recorder) for edits in (configuration.attention, configuration.ffn))
        head = recorder.optional_number(HEAD_RATE)
        if has_input_dropout(configuration):
            recorder.optional_number(LORA_DROPOUT)
        fields = {"method": method, "parameters": recorder.values, "head_learning_rate": head}
        return Candidate.of(configuration, (attention, ffn), self.shape, **fields)

    def _suggest_share(self, structure: Configuration, recorder: ParameterRecorder) -> float:
        """Suggest the share of attention if both sides have a bottleneck to size; else return all or nothing."""
        sized = [any(edit.sized_form for edit in edits) for edits in (structure.attention, structure.ffn)]
        return recorder.number("attention_share") if all(sized) else float(sized[0])

    def _peak_lr(self, edits: tuple[Edit, ...], recorder: ParameterRecorder) -> float | None:
        if not edits:
            return None
        normalized = recorder.number(f"learning_rate.{edits[0].form.name}")
        return normalized / rate_scaling(edits, self.shape, self.options)

    def peak_lr_range(self, edits: Sequence[Edit]) -> tuple[float, float]:
        """Return the lowest and highest peak learning rate of the edits of one side."""
        return peak_lr_range(edits, self.shape, self.options)
