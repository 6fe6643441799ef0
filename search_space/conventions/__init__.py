"""Counting conventions: what papers and released codes count of a published method.

Every number is a count of this package, of the method's configuration or of a documented variation of it, plus what a
code has beside it (unused networks, norms, biases of the task head); nothing is looked up.
"""

from collections.abc import Callable
from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.conventions.case import MethodCase
from search_space.conventions.codes import (
    LI_MIDDLE,
    adapterhub,
    adapters,
    first_stage,
    impl,
    kept_half_percent,
    loralib,
    mam_inducer,
    original_trained,
    peft,
    prefix_of_peft,
    stored,
    trained_mlp,
    unify_receiving_grad,
    unify_requires_grad,
    unify_trained,
    with_heads,
)
from search_space.dimensions import Heads
from search_space.published import Values, published_method

__all__ = ["CONVENTIONS", "Convention", "conventions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """A way of counting.

    Attributes:
        name: As in tables and JSON.
        meaning: One line.
        count: Parameters of a method by it; None where it means nothing.
    """

    name: str
    meaning: str
    count: Callable[[MethodCase], int | None]


def conventions(method: str, shape: BackboneShape, settings: Values | None = None) -> dict[str, int]:
    """Parameters of a published method by every counting convention that concerns it.

    BitFit counts 0 where the backbone has no bias, although it cannot be built there.

    Args:
        settings: Hyper-parameter values by name or alias; the rest keep their defaults.

    Raises:
        UnknownMethodError: If there is no such method, or it has no such setting.
        InvalidEditError: If the method is not valid on the backbone.
    """
    published = published_method(method)
    values = {name: value for name, value in published.values(settings).items() if value is not None}
    case = MethodCase(method=published, shape=shape, values=values)
    found = {convention.name: convention.count(case) for convention in CONVENTIONS}
    return {name: number for name, number in found.items() if number is not None}


CONVENTIONS: tuple[Convention, ...] = (
    Convention(
        name="weights_only",
        meaning="matrices alone, of tables what is left after training (He et al. 2022, appendix B)",
        count=lambda case: case.counts().weights_only,
    ),
    Convention(
        name="with_bias",
        meaning="weights_only and the biases of the projections",
        count=lambda case: case.counts().with_bias,
    ),
    Convention(
        name="stored",
        meaning="what must be saved after training; of the multi-head adapter with the norms of its released code",
        count=stored,
    ),
    Convention(name="trained", meaning="what is trained here", count=lambda case: case.counts().trained),
    Convention(
        name="trained_mlp",
        meaning=f"what is trained if an MLP makes the tables (hidden width {LI_MIDDLE} unless set)",
        count=trained_mlp,
    ),
    Convention(name="per_query_head", meaning="weights with a block per query head", count=with_heads(Heads.QUERY)),
    Convention(
        name="per_kv_head", meaning="weights with a block per key/value head", count=with_heads(Heads.KEY_VALUE)
    ),
    Convention(
        name="unify_trained",
        meaning="trained by the code of He et al. 2022: prefix MLPs for three kinds of attention, norms at attention",
        count=unify_trained,
    ),
    Convention(
        name="unify_requires_grad",
        meaning="unify_trained, with the second, unused adapter beside every FFN of an encoder",
        count=unify_requires_grad,
    ),
    Convention(
        name="unify_receiving_grad",
        meaning="the part of unify_requires_grad that gets gradients",
        count=unify_receiving_grad,
    ),
    Convention(
        name="impl",
        meaning="what Chen et al. 2022 print the percentage of: with biases, those of LoRA on all but encoders",
        count=impl,
    ),
    Convention(
        name="repo_config_used",
        meaning="impl, with the norm of the FFN adapter that the released configuration has",
        count=mam_inducer(1),
    ),
    Convention(
        name="repo_config_requires_grad",
        meaning="repo_config_used, with two norms a block that are never used",
        count=mam_inducer(3),
    ),
    Convention(name="peft", meaning="as PEFT: prompts for both stacks, (IA)³ where its defaults put it", count=peft),
    Convention(
        name="peft_flat",
        meaning="as PEFT: one table, of an encoder-decoder for the decoder's self-attention alone",
        count=lambda case: prefix_of_peft(case, is_projected=False),
    ),
    Convention(
        name="peft_projection",
        meaning="peft_flat trained through an MLP as wide as the keys",
        count=lambda case: prefix_of_peft(case, is_projected=True),
    ),
    Convention(
        name="adapterhub",
        meaning="trained by the library adapters: no norms, no adapter at cross-attention",
        count=adapterhub,
    ),
    Convention(name="adapters", meaning="the adapters alone, without norms", count=adapters),
    Convention(
        name="original_trained",
        meaning="adapters, every LayerNorm of the backbone and the task head (Houlsby et al. 2019)",
        count=original_trained,
    ),
    Convention(name="loralib", meaning="as loralib: no biases", count=loralib),
    Convention(
        name="stored_nonzero_0_5pct",
        meaning="weights that differ in the end when 0.5% may; their places not counted",
        count=kept_half_percent,
    ),
    Convention(
        name="trained_stage1",
        meaning="a change and a gate for every weight, pooler included, and a gate for every tensor",
        count=first_stage,
    ),
)
"""Every convention, those of this package first."""
