"""The sections of a study file. Every key, its default and its range stand here and nowhere else."""

from dataclasses import fields
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, model_validator

from search_space.checked import Distinct, Positive, Size, Text, Whole
from search_space.dimensions import Activation, ScalePer
from search_space.errors import SearchSpaceError
from search_space.forms import Init, OwnNorm
from search_space.published import COMPARED, METHODS
from search_space.published.point import PublishedPoint
from search_space.space.options import SpaceOptions
from studies.specification.fields import (
    Duration,
    FormName,
    GateName,
    Range,
    RatedForm,
    SamplerName,
    auto_count_or_none,
    auto_or_count,
    below_one,
    published_methods,
)
from studies.specification.section import Section

_DEFAULTS = SpaceOptions()


def _all_rates(rates: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The ranges of all forms, those left out with their default."""
    return {**_DEFAULTS.learning_rates, **rates}


class Pruning(Section):
    """When trials are compared, and how many go on (asynchronous successive halving).

    Attributes:
        first_rung_steps: Steps of the first comparison; ``auto`` is an eighth of a full trial, null never prunes.
        reduction: Each next rung has so many times the steps, and about one trial in so many goes on.
        protect_published: Whether published methods run to the end whatever the rungs say, so that the comparison
            is whole.
    """

    first_rung_steps: Annotated[Literal["auto"] | int | None, BeforeValidator(auto_count_or_none)] = "auto"
    reduction: Annotated[Whole, Field(ge=2)] = 2
    protect_published: bool = True


class Search(Section):
    """What may be proposed, and who proposes.

    Attributes:
        sampler: ``tpe``, ``random``, ``nsga2``, ``gp``, ``qmc``, or one that an installed package adds.
        published: Published methods that are tried first: ``compared`` (those of the papers' comparison), ``all``,
            ``none``, or a list. A method is resized to the budget; a point such as ``lora_qv:s=4`` has fixed
            hyper-parameters, and one that fixes a size is taken exactly as it is.
        published_scale: Fixed scale of the published methods that have one.
        attention_forms: Functional forms at the attention sublayers; empty leaves attention alone.
        ffn_forms: Functional forms at the FFN sublayers; empty leaves the FFN alone.
        sites: ``tied`` makes one choice for all kinds of attention; ``separate`` gives each kind its own, or none.
        layers: Kinds of layer choices: ``all``, a contiguous ``range``, groups of a ``spindle``.
        activations: Of bottlenecks.
        gates: Composition functions, wherever they are legal.
        scales: Fixed scales, of the gate ``scale``.
        scale_per: For what a learned scale has a number of its own, of the gate ``scale_learned``.
        key_widths: Bottlenecks of an inducer's keys, of the gate ``inducer``; null makes the query its own key.
        norms: Own LayerNorms of bottlenecks.
        biases: Of bottlenecks and low-rank maps; usually a bottleneck has them, but not at the heads and at k, and a
            low-rank map has none.
        inits: How bottlenecks start.
        reparameterizations: Hidden widths of MLPs that make tables while training; null trains the tables themselves.
        products: Kronecker products of the form phm.
        factors: Rank of their factors; null for full matrices.
        sharing: Whether phm's small factors are shared by all sublayers.
        near_duplicates: Whether what computes the same as something else, or nearly, is proposed too.
        attention_share: Lowest and highest share of the budget at attention, when both sublayers are edited.
        learning_rates: Lowest and highest peak learning rate of a form; forms left out keep their default.
    """

    sampler: SamplerName = "tpe"
    published: Annotated[str | tuple[PublishedPoint, ...], PlainValidator(published_methods)] = "compared"
    published_scale: Positive = _DEFAULTS.published_scale
    attention_forms: Annotated[tuple[FormName, ...], Distinct] = _DEFAULTS.attention_forms
    ffn_forms: Annotated[tuple[FormName, ...], Distinct] = _DEFAULTS.ffn_forms
    sites: Literal["tied", "separate"] = "tied"
    layers: Annotated[tuple[Literal["all", "range", "spindle"], ...], Distinct, Field(min_length=1)] = ("all",)
    activations: Annotated[tuple[Activation, ...], Distinct, Field(min_length=1)] = _DEFAULTS.activations
    gates: Annotated[tuple[GateName, ...], Distinct, Field(min_length=1)] = _DEFAULTS.gates
    scales: Annotated[tuple[Positive, ...], Distinct, Field(min_length=1)] = _DEFAULTS.scales
    scale_per: Annotated[tuple[ScalePer, ...], Distinct, Field(min_length=1)] = _DEFAULTS.scale_per
    key_widths: Annotated[tuple[Size | None, ...], Distinct, Field(min_length=1)] = _DEFAULTS.key_widths
    norms: Annotated[tuple[OwnNorm, ...], Distinct, Field(min_length=1)] = _DEFAULTS.norms
    biases: Annotated[tuple[Literal["usual", "with", "without"], ...], Distinct, Field(min_length=1)] = ("usual",)
    inits: Annotated[tuple[Init, ...], Distinct, Field(min_length=1)] = _DEFAULTS.inits
    reparameterizations: Annotated[tuple[Size | None, ...], Distinct, Field(min_length=1)] = (
        _DEFAULTS.reparameterizations
    )
    products: Annotated[tuple[Size, ...], Distinct, Field(min_length=1)] = _DEFAULTS.products
    factors: Annotated[tuple[Size | None, ...], Distinct, Field(min_length=1)] = _DEFAULTS.factors
    sharing: Annotated[tuple[Literal["shared", "own"], ...], Distinct, Field(min_length=1)] = ("shared",)
    near_duplicates: bool = False
    attention_share: Annotated[Range, AfterValidator(below_one)] = _DEFAULTS.attention_share
    learning_rates: Annotated[dict[RatedForm, Range], AfterValidator(_all_rates)] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if not self.attention_forms and not self.ffn_forms and not self.published_points:
            raise ValueError(
                "must leave something to search; got no form at attention, none at the FFN and no published method"
            )
        try:
            self.space_options()
        except SearchSpaceError as error:
            raise ValueError(str(error).rstrip(".")) from error
        return self

    @property
    def published_points(self) -> tuple[PublishedPoint, ...]:
        """The published methods that are tried first."""
        named = {"none": (), "compared": COMPARED, "all": tuple(METHODS)}
        return tuple(map(PublishedPoint, named[self.published])) if isinstance(self.published, str) else self.published

    def space_options(self) -> SpaceOptions:
        """What the search space may propose."""
        same = {field.name for field in fields(SpaceOptions)} - {"published"}
        return SpaceOptions(**{name: getattr(self, name) for name in same}, published=self.published_points)


class Fleet(Section):
    """Who does the work. May differ from launch to launch.

    Attributes:
        backend: ``ray``, or ``inline`` for one process.
        workers: ``auto`` is one per GPU, else one per core.
        pack: Trials that a worker trains in one pass; ``auto`` is as many as its memory holds.
        time_budget: Seconds after which no more trials begin and the running ones are laid aside.
        artefacts: Folder of the snapshots; null is ``deltaspace-artefacts`` in the working directory.
    """

    backend: Literal["ray", "inline"] = "ray"
    workers: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_count)] = "auto"
    pack: Annotated[Literal["auto"] | int, BeforeValidator(auto_or_count)] = "auto"
    time_budget: Duration = None
    artefacts: Text | None = None
