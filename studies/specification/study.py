"""A study file, validated, and what the packages below are told of it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from search_space.checked import Name, Whole
from search_space.counting.budget import ParameterBudget
from search_space.forms import FORMS
from studies.search.rungs import Protected, RungPlan
from studies.specification.defaults import LeftOut, take_over, with_earlier_defaults
from studies.specification.fields import LARGEST, Budget, Section, Source
from studies.specification.presets import with_training_preset
from studies.specification.sections import Fleet, Pruning, Search
from studies.specification.task import TaskSection
from trial_runner.requests import TrainingPlan
from trial_runner.training import Training

LAUNCH_KEYS = ("trials", "fleet")
"""Keys that may differ between two launches of one study; all others define the search."""

_ARTEFACTS = "deltaspace-artefacts"
_SURE_RUNG_SHARE = 4
_FEWEST_AT_RUNGS, _LEARNED_PER_MEASURED = 256, 2


class Specification(Section):
    """A study: what is searched, on what, how far.

    Attributes:
        name: Unique in the storage.
        backbone: ``embedded``, a folder, or a name on the hub; or a mapping that says how its weights are held, too.
        task: What is learned.
        budget: Most parameters a configuration may add: a share of the backbone's, or a number.
        trials: How many trials the study has in all, published methods among them.
        seed: Everything random derives from it.
        training: How every trial is trained.
        pruning: When trials are compared.
        search: What may be proposed.
        fleet: Who does the work.
    """

    name: Name
    backbone: Source
    task: TaskSection
    budget: Budget
    trials: Annotated[Whole, Field(ge=1, le=LARGEST)] = 40
    seed: Annotated[Whole, Field(ge=0, lt=2**63)] = 0
    training: Training = Training()
    pruning: Pruning = Pruning()
    search: Search = Search()
    fleet: Fleet = Fleet()
    _left_out: LeftOut = PrivateAttr(default=LeftOut())

    @model_validator(mode="wrap")
    @classmethod
    def _fill(cls, given: Any, validated: ModelWrapValidatorHandler[Self]) -> Self:
        found = validated(with_training_preset(given))
        if isinstance(given, Mapping):
            found._left_out = LeftOut.of(given)
        return found

    @model_validator(mode="after")
    def _check_rungs(self) -> Self:
        first = self.pruning.first_rung_steps
        if isinstance(first, int) and first > self.training.steps:
            raise ValueError(
                f"pruning.first_rung_steps: must be at most training.steps ({self.training.steps}); got {first}"
            )
        return self

    @model_validator(mode="after")
    def _check_products(self) -> Self:
        if self.backbone.dtype == "bf16" and self.training.precision == "fp32":
            raise ValueError(
                "training.precision: must be bf16 or auto where backbone.dtype is bf16, whose products are of bf16; "
                "got fp32"
            )
        return self

    @model_validator(mode="after")
    def _check_shards(self) -> Self:
        fleet, quantization = self.fleet, self.backbone.quantization
        if fleet.shards == 1:
            return self
        if fleet.pack == "auto":
            raise ValueError(
                f"fleet.pack: must be a number where fleet.shards is {fleet.shards}, of the trials of each; got auto. "
                "deltaspace plan says how many fit"
            )
        if quantization != "none":
            raise ValueError(
                f"fleet.shards: must be 1 where backbone.quantization is {quantization}, whose codes are not shared "
                f"out; got {fleet.shards}"
            )
        for key in ("attention_forms", "ffn_forms"):
            named = [name for name in getattr(self.search, key) if FORMS[name].needs_weights]
            if named:
                raise ValueError(
                    f"search.{key}: must leave out what is computed of whole weights where fleet.shards is "
                    f"{fleet.shards}; got {named[0]}"
                )
        return self

    @property
    def rung_steps(self) -> tuple[int, ...]:
        """Steps at which trials are measured, ascending; the last is ``training.steps``, the others are rungs."""
        steps, first = self.training.steps, self.pruning.first_rung_steps
        rung = self._first_rung() if first == "auto" else first
        rungs = []
        while isinstance(rung, int) and rung < steps:
            rungs.append(rung)
            rung *= self.pruning.reduction
        return (*rungs, steps)

    def _first_rung(self) -> int:
        steps = self.training.steps
        return max(1, steps // _SURE_RUNG_SHARE, math.ceil(2 * self.training.warmup_fraction * steps))

    @property
    def rung_examples(self) -> int | None:
        """Most validation examples that are measured at a rung; None for all of them."""
        first, examples = self.rung_steps[0], self.pruning.examples
        if examples == "auto":
            return max(_FEWEST_AT_RUNGS, first * self.training.batch_size // _LEARNED_PER_MEASURED)
        return examples if isinstance(examples, int) else None

    def rung_plan(self, examples: int | None = None) -> RungPlan:
        """Where trials are compared, with the number of examples that the last score of a trial is of."""
        protect = self.pruning.protect_published
        protected = Protected.BEST if protect == "best" else Protected.ALL if protect else Protected.NONE
        return RungPlan(
            steps=self.rung_steps[:-1],
            reduction=self.pruning.reduction,
            rule=self.pruning.rule,
            protected=protected,
            examples=examples,
            measured=self.rung_examples,
            stops_collapsed=self.pruning.stop_collapsed,
            seed=self.seed,
        )

    def parameter_budget(self) -> ParameterBudget:
        """The budget, still without a backbone."""
        return ParameterBudget.parse(self.budget)

    def training_plan(self) -> TrainingPlan:
        """How the trial runner trains every trial."""
        return TrainingPlan(
            **asdict(self.training), evaluate_at_steps=self.rung_steps, rung_examples=self.rung_examples
        )

    def artefact_folder(self) -> Path:
        """Absolute folder of the snapshots."""
        return Path(self.fleet.artefacts or _ARTEFACTS).absolute()

    def as_json(self) -> dict[str, object]:
        """The whole study, defaults filled in, as JSON-able values; ``model_validate`` reads it back."""
        return self.model_dump(mode="json")

    def search_identity(self) -> dict[str, object]:
        """The part of `as_json` that defines the search; two launches of one study must agree on it.

        What a launch has found out by itself is compared by itself: `MadeTable.check`.
        """
        search = replace(self.search, made_table=None)
        found = self.model_copy(update={"search": search}).as_json()
        identity = {key: value for key, value in found.items() if key not in LAUNCH_KEYS}
        return {**identity, "budget": str(self.parameter_budget())}

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Self:
        """Read `as_json` back.

        Keys that came later have the defaults that they came with, whatever a preset says by now.
        """
        stored = with_earlier_defaults(stored)
        training = stored.get("training", {})
        if isinstance(training, Mapping):
            stored = {**stored, "training": {**asdict(Training()), **training}}
        return cls.model_validate(stored)

    def continuing(self, begun_with: Self) -> Self:
        """The same for a study that exists: where a default has changed and is asked for, what it was begun with."""
        return type(self).model_validate(take_over(self.as_json(), begun_with.as_json(), self._left_out))
