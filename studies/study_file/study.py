"""Specification of a study: a validated study file, and the arguments for the other packages."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from search_space.backbones.shape import BackboneShape
from search_space.field_types import Integer, Name
from search_space.forms import FORMS
from search_space.parameter_counts.budget import budget_parameters, read_budget
from search_space.space.options import FormValues, Space, SpaceOptions, learning_rates_for
from studies.objectives import SMALLEST_SHARE, SizeGoal, SizeMeasure
from studies.pruning.rungs import Protected, RungPlan
from studies.study_file.fields import LARGEST, Budget, Section, Source
from studies.study_file.sections import SPACES, Fleet, Pruning, SearchSection, TaskSection, named_space
from trial_runner.requests import TrainingPlan
from trial_runner.training import Training

FOUND_OUT = ("lessons", "made_table", "inputs", "dropped", "cuts")
"""Keys of the values that a launch adds, which no study file has."""

LAUNCH_KEYS = ("trials", "fleet", *FOUND_OUT)
"""Keys that may differ between two launches of one study, or that the first one adds; the others define the search."""

FIXED_BY_METHODS = ("attention_forms", "ffn_forms", "gates", "values", "layers", "sites", "edits_per_side")
"""Keys of ``space`` that a published method fixes; ``values.scales`` aside."""

_ARTEFACTS = "deltaspace-artefacts"
_REDUCTION = 2
_SURE_RUNG_SHARE = 4
_FEWEST_AT_RUNGS, _LEARNED_PER_MEASURED = 256, 2


class Specification(Section):
    """Specification of a study.

    Attributes:
        name: Unique name in the storage.
        backbone: ``embedded``, a folder, or a name on the hub; or a mapping that also sets the type of its weights.
        task: Task to learn.
        budget: Largest number of parameters of a configuration: a percentage of the backbone's such as ``0.5%``, or a
            number.
        trials: Number of trials of the study, published methods among them.
        seed: Seed of all that is random.
        training: Training of every trial.
        pruning: Comparison of trials at rungs.
        space: Space of proposals; or ``lora``, a sweep of LoRA: targets, rank, scale, learning rate and dropout, all of
            which peft can load.
        search: Sampler, objectives and initial design.
        fleet: Resources of a launch.
    """

    name: Name
    backbone: Source
    task: TaskSection
    budget: Budget
    trials: Annotated[Integer, Field(ge=1, le=LARGEST)] = 40
    seed: Annotated[Integer, Field(ge=0, lt=2**63)] = 0
    training: Training = Training()
    pruning: Pruning = Pruning()
    space: Annotated[Space, BeforeValidator(named_space)] = Space()
    search: SearchSection = SearchSection()
    fleet: Fleet = Fleet()

    @model_validator(mode="after")
    def _fill_in_learning_rates(self) -> Self:
        """Fill in the default learning rates, so that a study keeps the ranges that it was begun with."""
        rates = {**learning_rates_for(self.training.steps), **self.space.learning_rates}
        object.__setattr__(self, "space", replace(self.space, learning_rates=rates))
        return self

    @model_validator(mode="after")
    def _check(self) -> Self:
        for problem in chain(self._problems(), self._problems_of_shards()):
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        space, first, steps = self.space, self.pruning.first_rung_steps, self.training.steps
        if SizeMeasure.EXTRA_FLOPS in self.search.objectives and space.mergeable:
            yield (
                "search.objectives: must leave extra FLOPs to be few where they are an objective; what is "
                "mergeable has none"
            )
        if space.rank and space.size and [*space.size] != SPACES["lora"]["size"]:
            yield f"space.size: must be left out where space.rank is given, which takes its place; got {[*space.size]}"
        usual = replace(Space(), values=replace(FormValues(), scales=space.values.scales))
        fixed = [key for key in FIXED_BY_METHODS if getattr(space, key) != getattr(usual, key)]
        if space.methods and fixed:
            names = ", ".join(space.methods)
            yield f"space.methods: must stand without space.{fixed[0]}, which published methods fix; got {names}"
        if not space.attention_forms and not space.ffn_forms and not self.space_options.published_points:
            yield (
                "space: must leave something to search; got no form at attention, none at the FFN and no published "
                "method"
            )
        if isinstance(first, int) and first > steps:
            yield f"pruning.first_rung_steps: must be at most training.steps ({steps}); got {first}"
        if self.backbone.dtype == "bf16" and self.training.precision == "fp32":
            yield (
                "training.precision: must be bf16 or auto where backbone.dtype is bf16, whose products are of bf16; "
                "got fp32"
            )

    def _problems_of_shards(self) -> Iterator[str]:
        shards, quantization = self.fleet.worker.shards, self.backbone.quantization
        if shards == 1:
            return
        if self.fleet.pack == "auto":
            yield (
                f"fleet.pack: must be a number where fleet.worker.shards is {shards}, of the trials of each; "
                "got auto. deltaspace plan says how many fit"
            )
        if quantization != "none":
            yield (
                f"fleet.worker.shards: must be 1 where backbone.quantization is {quantization}, whose codes are not "
                f"shared out; got {shards}"
            )
        for key in ("attention_forms", "ffn_forms"):
            named = [name for name in getattr(self.space, key) if FORMS[name].needs_weights]
            if named:
                yield (
                    f"space.{key}: must leave out what is computed of whole weights where fleet.worker.shards is "
                    f"{shards}; got {named[0]}"
                )

    @property
    def rung_steps(self) -> tuple[int, ...]:
        """Steps of the measurements, ascending: the rungs, then ``training.steps``.

        No rung is beyond half of the steps, except a first one that is given: pruning saves too little there.
        """
        steps, first = self.training.steps, self.pruning.first_rung_steps
        rung = self._first_rung() if first == "auto" else first
        rungs = [first] if isinstance(first, int) and steps / 2 < first < steps else []
        while isinstance(rung, int) and 2 * rung <= steps:
            rungs.append(rung)
            rung *= _REDUCTION
        return (*rungs, steps)

    def _first_rung(self) -> int:
        steps, batch = self.training.steps, self.training.batch_size
        warmed_up = math.ceil(2 * self.training.warmup_fraction * steps)
        return max(steps // _SURE_RUNG_SHARE, warmed_up, -(-_FEWEST_AT_RUNGS // batch))

    @property
    def rung_examples(self) -> int | None:
        """Largest number of validation examples at a rung; None for all of them."""
        first, examples = self.rung_steps[0], self.pruning.examples
        if examples == "auto":
            return max(_FEWEST_AT_RUNGS, first * self.training.batch_size // _LEARNED_PER_MEASURED)
        return examples if isinstance(examples, int) else None

    def rung_plan(self, examples: int | None = None) -> RungPlan:
        """Return the plan of the rungs.

        Args:
            examples: Number of examples of the last measurement of a trial.
        """
        return RungPlan(
            steps=self.rung_steps[:-1],
            rule=self.pruning.rule,
            protected=Protected.BEST,
            examples=examples,
            measured=self.rung_examples,
            stops_collapsed=True,
            size=self.minimized,
            seed=self.seed,
        )

    def budget_parameters(self, shape: BackboneShape) -> int:
        """Return the budget on a backbone as a number of parameters."""
        return budget_parameters(read_budget(self.budget), shape.parameters)

    def training_plan(self) -> TrainingPlan:
        """Return the training plan of every trial."""
        return TrainingPlan(
            **asdict(self.training), evaluate_at_steps=self.rung_steps, rung_examples=self.rung_examples
        )

    def artefact_folder(self) -> Path:
        """Return the absolute folder of the snapshots."""
        return Path(self.fleet.artefacts or _ARTEFACTS).absolute()

    def as_json(self) -> dict[str, object]:
        """Return the study with all defaults as JSON-able values; ``model_validate`` reads it back."""
        return self.model_dump(mode="json")

    def search_identity(self) -> dict[str, object]:
        """Return the part of `as_json` that defines the search; two launches of one study must agree on it."""
        identity = {key: value for key, value in self.as_json().items() if key not in LAUNCH_KEYS}
        budget = read_budget(self.budget)
        return {**identity, "budget": f"{budget:,}" if isinstance(budget, int) else f"{100 * budget:g}%"}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Self:
        """Return the specification of `as_json`, without the values that a launch has added."""
        known = {key: value for key, value in stored.items() if key not in FOUND_OUT or key in cls.model_fields}
        return cls.model_validate(known | {"budget": _with_unit(known.get("budget"))})

    @property
    def space_options(self) -> SpaceOptions:
        """Options of the search space, published methods included."""
        has_sizes = (self.minimized or self.space.methods) and self.space.size is None
        size = (SMALLEST_SHARE, 1.0) if has_sizes else self.space.size
        return SpaceOptions.of(self.space, published=self.search.published, size=size)

    @property
    def minimized(self) -> SizeMeasure | None:
        """Size that is minimized; None if the score is the only objective."""
        return next(iter(self.search.objectives[1:]), None)

    def goal(self, budget: int) -> SizeGoal | None:
        """Return the size to minimize under a budget of parameters; None if the score is the only objective."""
        if self.minimized is None:
            return None
        return SizeGoal.of(
            self.minimized,
            budget=budget,
            smallest_share=self.space_options.budget_fractions[0],
            max_extra_flops=self.space.max_extra_flops,
        )

    @property
    def replaceable(self) -> tuple[str, ...]:
        """Published methods that warm-start configurations may replace: those that are not listed one by one."""
        return self.space_options.published_points if isinstance(self.search.published, str) else ()


def _with_unit(budget: Any) -> object:
    """Return a recorded budget as it is written now; earlier releases read a bare fraction as a share."""
    try:
        value = float(budget)
    except (TypeError, ValueError):
        return budget
    return f"{100 * value:.12g}%" if 0 < value < 1 else 1 if value == 1 else budget
