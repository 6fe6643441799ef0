"""The search space as Optuna parameters: every proposal is a valid configuration within the budget.

The parameters form a tree: where to put edits, which form there, which tensor it writes, which it reads, how it is
composed. A point that could not be sized within the budget is not in the tree, so nothing is ever rejected.
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
from search_space.errors import BudgetError, InvalidEditError, SearchSpaceError
from search_space.layers import AllLayers, Layers
from search_space.parameter_counts.budget import solve
from search_space.parameter_counts.counts import Counts, count, count_edits, shared_parameter_count
from search_space.published.point import PublishedPoint
from search_space.space.budget_fit import BudgetFit, check_limits
from search_space.space.layer_choice import available_layers, layer_parameters, stack_depth, suggest_layers
from search_space.space.options import SpaceOptions
from search_space.space.pairs import StructurePairs
from search_space.space.parameter_table import HEAD_RATE as HEAD_RATE
from search_space.space.parameter_table import METHOD as METHOD
from search_space.space.parameter_table import SIZE as SIZE
from search_space.space.parameter_table import parameters_of_space, side_of, sides, split_edits, split_of, unnamed_rates
from search_space.space.part_space import PartSpace
from search_space.space.points import ATTENTION, FFN, site_of
from search_space.space.product import Point, Structure
from search_space.space.rates import peak_lr_range, rate_scaling
from search_space.space.trial_protocol import Parameter, ParameterRecorder, ParameterSource, is_in_domain

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal: what to train, with what learning rates, and where it came from.

    Attributes:
        configuration: Valid, and within the budget.
        attention_learning_rate: Peak rate at attention; None without edits there.
        ffn_learning_rate: Peak rate at the FFN; None without edits there.
        method: The published method or point as it was named; None for points of the search.
        attention_share: Share of the stored parameters at attention, as solved.
        counts: Of the configuration.
        fingerprint: Of the configuration and its learning rates.
        parameters: The search parameters that were suggested, by name.
        head_learning_rate: Peak rate of the task head; None for that of all trials of the study.
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
        cls, configuration: Configuration, rates: tuple[float | None, float | None], shape: BackboneShape, **known: Any
    ) -> Self:
        """A configuration with its rates at attention and at the FFN, and what else is known of it.

        Raises:
            InvalidEditError: If it is not valid on the backbone.
        """
        counts, head = count(configuration, shape), known.get("head_learning_rate")
        told = {ATTENTION: rates[0], FFN: rates[1]} | ({} if head is None else {"head": head})
        # two significant digits: rates closer than that are the same trial
        rounded = {side: None if rate is None else f"{rate:.1e}" for side, rate in told.items()}
        return cls(
            configuration=configuration,
            attention_learning_rate=rates[0],
            ffn_learning_rate=rates[1],
            attention_share=count_edits(configuration.attention, shape).stored / max(1, counts.stored),
            counts=counts,
            fingerprint=fingerprint(configuration, shape, learning_rates=rounded),
            **known,
        )


class SearchSpace:
    """All four design dimensions, the share of attention and the learning rates, under a budget.

    Attributes:
        shape: The backbone.
        budget: Most stored parameters.
        options: What is searched.
        questions: What is asked of each part of the model that can be edited.
        trees: What may be asked of an edit of each part: ``attention`` and ``ffn``, or each kind of attention and
            ``ffn``. Empty if no form is searched and published points are all there is.
        placements: The parts that are edited together, by the name of their choice.
        fitting: What fits the budget, and at which layers.
        layers: The kinds of layer choices.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error says the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """

    def __init__(self, *, shape: BackboneShape, budget: int, options: SpaceOptions | None = None) -> None:
        """Build the tree of what fits.

        Args:
            shape: The backbone.
            budget: Most stored parameters.
            options: What is searched; None for everything.
        """
        self.shape = shape
        self.budget = budget
        self.options = options or SpaceOptions()
        self.layers = available_layers(self.options.layers, stack_depth(shape))
        self.fitting = BudgetFit(self.parts, shape, self.options, budget=budget, has_layers=bool(self.layers))
        self.placements = self.fitting.placements
        self.questions = {
            part: PartSpace(part, some, shape, self.options, part_limit=self.fitting.part_limit)
            for part, some in self.fitting.points.items()
        }
        self.trees = {part: asked.tree for part, asked in self.questions.items()}
        self._parameters = parameters_of_space(self.questions, self.placements, self.layers, self.options)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the model that the options let be edited, whether something fits there or not."""
        if self.options.sites == "tied":
            return ATTENTION, FFN
        kinds = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS)
        return (*(kind.value for kind in kinds if self.shape.sublayers(kind)), FFN)

    def parameters(self) -> dict[str, Parameter]:
        """Every parameter that a proposal may use, by name. The same for every proposal of the space.

        Studies that are stored go on without the rates of forms that came later, which they do not name.
        """
        return {name: values for name, values in self._parameters.items() if name not in self._unnamed_rates}

    @cached_property
    def _unnamed_rates(self) -> set[str]:
        return unnamed_rates(self.shape, self.options)

    def suggest(self, trial: ParameterSource) -> Candidate:
        """A valid configuration within the budget, with its learning rates.

        Args:
            trial: What suggests, or the parameters' values by name; a trial of Optuna whose user attribute ``method``
                names a published method or point is that, and suggests its rates.

        Raises:
            SearchSpaceError: If published points are all there is.
        """
        method = getattr(trial, "user_attrs", {}).get(METHOD)
        if method is not None:
            return self.suggest_published(method, trial)
        if not self.trees:
            raise SearchSpaceError("the study must leave something to search; got published methods only.")
        recorder = ParameterRecorder(trial, self._parameters)
        parts = self.placements[recorder.choose("placement", tuple(self.placements))]
        depth = stack_depth(self.shape)
        asked = {side: suggest_layers(side, self.layers, depth, recorder) for side in sides(parts)}
        chosen = {part: self.questions[part].suggest(recorder) for part in parts}
        layers = self.fitting.layers(chosen, asked)
        edits = (edit for part in parts for point in chosen[part] for edit in point.at_layers(layers[side_of(part)]))
        structure = Configuration(edits=tuple(edits))
        share = self._suggest_share(structure, recorder)
        splits = {
            first: recorder.number(split_of(side))
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
        )
        return self._candidate(solved, recorder, method=None)

    def _suggest_budget_fraction(self, structure: Configuration, recorder: ParameterRecorder) -> float:
        """The share of the budget: searched where there is something to size."""
        is_sized = any(edit.sized_form for edit in structure.edits)
        return recorder.number(SIZE) if SIZE in self._parameters and is_sized else self.options.budget_fractions[1]

    @cached_property
    def structures(self) -> Mapping[str, tuple[Point, ...]]:
        """All that one edit can be at each part of the model that can be edited."""
        return {part: asked.structures for part, asked in self.questions.items()}

    @cached_property
    def pairs(self) -> Mapping[str, StructurePairs]:
        """All that two edits can be at each part of the model that can have two."""
        return {part: asked.pairs for part, asked in self.questions.items() if asked.pairs is not None}

    def points_in(self, configuration: Configuration) -> dict[str, Structure] | None:
        """The structure of every part that a configuration edits, whatever its widths and layers.

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

    def answers(
        self,
        points: Mapping[str, Structure],
        *,
        peak_lrs: Mapping[str, float],
        share: float,
        layers: Mapping[str, Layers] | None = None,
        splits: Mapping[str, float] | None = None,
        budget_fraction: float = 1.0,
    ) -> dict[str, str | float] | None:
        """What `suggest` must be told to propose some structures together.

        Args:
            points: A structure for each part that is edited, or two.
            peak_lrs: Of ``attention`` and ``ffn``, as far as they are edited.
            share: Share of the budget that attention gets, where both have something to size.
            layers: At which blocks of ``attention`` and ``ffn``; all of them where nothing is said.
            splits: Share of the first of two edits in what ``attention`` and ``ffn`` get; half where nothing is said.
            budget_fraction: Share of the budget that they are made for, where sizes are searched.

        Returns:
            The parameters by name; None if one of them is out of its range, or the parts cannot be together.
        """
        names = {parts: name for name, parts in self.placements.items()}
        parts = tuple(part for part in self.trees if part in points)
        if parts not in names:
            return None
        given: dict[str, str | float] = {"placement": names[parts], "attention_share": share, SIZE: budget_fraction}
        for part in parts:
            given |= self.questions[part].choices_to(points[part])
        for side in sides(parts):
            chosen = layer_parameters(side, self.layers, stack_depth(self.shape), (layers or {}).get(side, AllLayers()))
            if chosen is None:
                return None
            given |= chosen
            given[split_of(side)] = (splits or {}).get(side, 0.5)
            of_side = (point for part in parts if side_of(part) == side for point in points[part])
            edits = tuple(edit for point in of_side for edit in point.edits)
            normalized_lr = self._normalized_lr(edits, peak_lrs[side])
            known = given.setdefault(f"learning_rate.{edits[0].form.name}", normalized_lr)
            if not math.isclose(float(known), normalized_lr, rel_tol=_ROUNDING):
                return None
        asked = self.suggest(given).parameters
        fits = all(is_in_domain(self._parameters[name], value) for name, value in asked.items())
        return dict(asked) if fits else None

    def parameters_of(
        self, configuration: Configuration, *, peak_lrs: Mapping[str, float], share: float | None = None
    ) -> dict[str, str | float] | None:
        """The parameters with which `suggest` proposes a configuration, resized to the budget, or to its size.

        Args:
            configuration: Such as that of a published method.
            peak_lrs: Of ``attention`` and ``ffn``, as far as they are edited.
            share: Share of the budget that attention was given; None for the share of the parameters it has.

        Returns:
            None if it cannot be proposed.

        Raises:
            InvalidEditError: If the configuration is not valid on the backbone.
        """
        points = self.points_in(configuration)
        layers = {ATTENTION: {edit.layers for edit in configuration.attention}}
        layers[FFN] = {edit.layers for edit in configuration.ffn}
        if not points or any(len(some) > 1 for some in layers.values()):
            return None
        stored = [count_edits(edits, self.shape).stored for edits in (configuration.attention, configuration.ffn)]
        return self.answers(
            points,
            peak_lrs=peak_lrs,
            share=stored[0] / sum(stored) if share is None else share,
            layers={side: next(iter(some)) for side, some in layers.items() if some},
            splits=self.splits_of(configuration),
            budget_fraction=self.budget_fraction_of(sum(stored)),
        )

    def budget_fraction_of(self, stored: int) -> float:
        """The share of the budget that so many parameters are, as far as it can be proposed."""
        low, high = self.options.budget_fractions
        return min(max(stored / self.budget, low), high)

    def splits_of(self, configuration: Configuration) -> dict[str, float]:
        """The share of the first edits in what each side with pairs stores, what edits have in common aside.

        The ends of the range stand for what is beyond them: an edit at its smallest or largest has the share it has.
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
        """A published method or point; only its learning rates are suggested.

        Args:
            name: Of a method, which is resized to the budget, or of a point with fixed hyper-parameters, such as
                ``lora_qv:s=4``. A point that fixes a size is taken exactly as it is.
            trial: What suggests, or the values of the parameters by name.

        Raises:
            UnknownMethodError: If there is no such method.
            BudgetError: If it does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        return self._candidate(
            self._published(PublishedPoint(name)), ParameterRecorder(trial, self._parameters), method=name
        )

    def published_that_fit(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """The published methods and points that are valid on the backbone and fit the budget.

        Args:
            names: Among which; None for those of the options.
        """
        fitting = []
        for name in map(PublishedPoint, self.options.published_points if names is None else names):
            try:
                self._published(name)
            except (BudgetError, InvalidEditError):
                continue
            fitting.append(name)
        return tuple(fitting)

    def _published(self, point: PublishedPoint) -> Configuration:
        found = point.configuration(self.shape, parameters=self.budget, scale=self.options.published_scale)
        check_limits(found, self.shape, self.options)
        return found

    def _candidate(self, configuration: Configuration, recorder: ParameterRecorder, *, method: str | None) -> Candidate:
        attention, ffn = (self._peak_lr(edits, recorder) for edits in (configuration.attention, configuration.ffn))
        head = recorder.optional_number(HEAD_RATE)
        known = {"method": method, "parameters": recorder.values, "head_learning_rate": head}
        return Candidate.of(configuration, (attention, ffn), self.shape, **known)

    def _suggest_share(self, structure: Configuration, recorder: ParameterRecorder) -> float:
        """The share of attention: searched where both sides have a bottleneck to size, else all or nothing."""
        sized = [any(edit.sized_form for edit in edits) for edits in (structure.attention, structure.ffn)]
        return recorder.number("attention_share") if all(sized) else float(sized[0])

    def _peak_lr(self, edits: tuple[Edit, ...], recorder: ParameterRecorder) -> float | None:
        if not edits:
            return None
        normalized_lr = recorder.number(f"learning_rate.{edits[0].form.name}")
        return normalized_lr / rate_scaling(edits, self.shape, self.options)

    def _normalized_lr(self, edits: Sequence[Edit], peak_lr: float) -> float:
        """The number of the options' range that a rate is; the ends of the range are met in spite of rounding."""
        normalized_lr = peak_lr * rate_scaling(edits, self.shape, self.options)
        ends = self.options.learning_rates[edits[0].form.name]
        return next((end for end in ends if math.isclose(normalized_lr, end, rel_tol=_ROUNDING)), normalized_lr)

    def peak_lr_range(self, edits: Sequence[Edit]) -> tuple[float, float]:
        """Lowest and highest peak learning rate of the edits of one side."""
        return peak_lr_range(edits, self.shape, self.options)
