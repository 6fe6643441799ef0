"""Counting conventions: the parameter counts of a published method in papers and released codes.

Every number is a count of this package, of the method's configuration or of a documented variation of it. Extra
modules of a code (unused networks, norms, biases of the task head) are added. No number is looked up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Insertion, Port, Site, StackKind
from search_space.edit import Edit
from search_space.forms import Bottleneck, Diagonal, Phm
from search_space.gates import Multiply
from search_space.parameter_counts.counts import Counts, count, count_edits
from search_space.published import HyperParameterValues, PublishedMethod, published_method

_HE_MIDDLE = 800
_LI_MIDDLE = 512
_HE_STACKS = 3

_QUERY_VALUE = (Port.Q, Port.V, Port.M)
_KEY_VALUE = (Port.K, Port.V, Port.M)
# Modules that PEFT scales by default: it matches the end of their names, and fused projections as a whole.
_PEFT_IA3: dict[str, tuple[Port, ...]] = {
    "bart": _QUERY_VALUE,
    "bert": (Port.K, Port.V, Port.CONCAT, Port.M),
    "roberta": (Port.K, Port.V, Port.CONCAT, Port.M),
    "gpt2": (Port.Q, Port.K, Port.V, Port.M),
    "llama": _KEY_VALUE,
    "t5": _KEY_VALUE,
    "qwen2": _QUERY_VALUE,
    "qwen3": _QUERY_VALUE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCase:
    """A published method with its hyper-parameter values on a backbone."""

    method: PublishedMethod
    shape: BackboneShape
    values: HyperParameterValues

    def edits(self, **changes: float | str) -> tuple[Edit, ...]:
        """Return the edits of the method with other values of the hyper-parameters that it has."""
        if self.method.name == "bitfit" and not (self.shape.biased_ports or self.shape.stack_norms):
            return ()  # cannot be built, but the biases can be counted
        settings = dict(self.values) | {name: value for name, value in changes.items() if self.has(name)}
        return self.method.configuration(self.shape, settings).edits

    def counts(self, **changes: float | str) -> Counts:
        """Count the method with other values of the hyper-parameters that it has."""
        return count(Configuration(edits=self.edits(**changes)), self.shape)

    def integer(self, name: str, default: int) -> int:
        """Return the value of a numeric hyper-parameter; the default if it is absent."""
        return int(self.values.get(name, default))

    def has(self, name: str) -> bool:
        """Return whether the method has a hyper-parameter."""
        return any(parameter.name == name for parameter in self.method.hyperparameters)

    @property
    def is_encoder(self) -> bool:
        """Whether the backbone is an encoder."""
        return self.shape.kind is StackKind.ENCODER

    @property
    def attentions(self) -> int:
        """Number of attention sublayers of the backbone."""
        return len(self.shape.sublayers(Site.ATTENTION))

    @property
    def blocks(self) -> int:
        """Number of blocks of the backbone, in both stacks."""
        return len(self.shape.sublayers(Site.FFN))


def stored(case: MethodCase) -> int:
    """Count the stored parameters; for the multi-head adapter with the norm of the released code at every attention."""
    norms = 2 * case.shape.width * case.attentions
    is_he = case.method.name == "multihead_parallel_adapter" and case.shape.kind is not StackKind.DECODER
    return case.counts().stored + (norms if is_he else 0)


def trained_mlp(case: MethodCase) -> int | None:
    """Count the parameters trained if an MLP makes the tables."""
    name = "reparameterization_width"
    return case.counts(**{name: case.integer(name, _LI_MIDDLE)}).trained if case.has(name) else None


def weights_per_head(case: MethodCase, heads: Heads) -> int | None:
    """Count the weights of the multi-head adapter with a block for each of some heads."""
    if case.method.name != "multihead_parallel_adapter":
        return None
    edits = tuple(
        replace(edit, form=replace(edit.form, heads=heads))
        for edit in case.edits()
        if isinstance(edit.form, Bottleneck)
    )
    return count_edits(edits, case.shape).weights_only


def _of_he(case: MethodCase) -> tuple[Edit, ...] | None:
    """Return the edits of a method in the code of He et al. 2022; None if the code lacks it."""
    if "unify" not in case.method.codes or case.shape.kind is StackKind.DECODER:
        return None
    middle = case.integer("reparameterization_width", _HE_MIDDLE)
    is_at_attention = any(edit.site.is_attention and isinstance(edit.form, Bottleneck) for edit in case.edits())
    norm = "in" if is_at_attention else "none"
    return case.edits(reparameterization_width=middle, norm=norm, bias="no")


def _trained_by_he(case: MethodCase, edits: tuple[Edit, ...], *, stacks: int | None) -> int:
    """Count the parameters trained by their code.

    Args:
        stacks: Number of attention kinds with a prefix MLP; None for those of the backbone.
    """
    total = 0
    for edit in edits:
        trained = count_edits((edit,), case.shape).trained
        if stacks is not None and getattr(edit.form, "reparameterization", None) is not None:
            kinds = len({sublayer.site for sublayer in case.shape.sublayers(edit.site)})
            trained = trained // kinds * stacks
        total += trained
    return total


def unify_trained(case: MethodCase) -> int | None:
    """Count the parameters trained by the code of He et al. 2022, prefix MLPs and norms at attention included."""
    edits = _of_he(case)
    if edits is None:
        return None
    total = _trained_by_he(case, edits, stacks=_HE_STACKS)
    if case.method.name == "multihead_parallel_adapter":
        total += 2 * case.shape.width * case.attentions
    if case.method.name == "bitfit" and case.is_encoder:
        total += case.shape.width + case.integer("labels", 2)  # biases of the task head's two layers
    return total


def unify_requires_grad(case: MethodCase) -> int | None:
    """Count also the second, unused adapter of their RoBERTa at every FFN."""
    edits, trained = _of_he(case), unify_trained(case)
    if edits is None or trained is None or not case.is_encoder:
        return None
    beside_ffn = tuple(
        edit
        for edit in edits
        if edit.site is Site.FFN and isinstance(edit.form, Bottleneck) and edit.insertion is Insertion.PARALLEL
    )
    return trained + count_edits(beside_ffn, case.shape).stored


def unify_receiving_grad(case: MethodCase) -> int | None:
    """Count without the modules that their RoBERTa does not use."""
    edits = _of_he(case)
    return None if edits is None or not case.is_encoder else _trained_by_he(case, edits, stacks=None)


def impl(case: MethodCase) -> int | None:
    """Count as Chen et al. 2022, for the methods that they compare."""
    if "inducer" not in case.method.codes:
        return None
    match case.method.name:
        case "prefix_tuning":
            return trained_mlp(case)
        case "sequential_adapter_single":
            return case.counts(norm="in").stored
        case "full_finetuning" | "mam_adapter":
            return case.counts().stored
        case _:
            return case.counts(bias="no" if case.is_encoder else "yes", norm="none").trained


def mam_inducer(case: MethodCase, norms: int) -> int | None:
    """Count the method with some LayerNorms per block: one at the FFN adapter, the rest unused."""
    if case.method.name != "mam_inducer":
        return None
    unused = 2 * case.shape.width * case.blocks * (norms - 1)
    return case.counts(bias="no" if case.is_encoder else "yes", norm="in").trained + unused


def peft(case: MethodCase) -> int | None:
    """Count as PEFT: prompts of both stacks, and (IA)^3 at its default modules."""
    if case.method.name in ("prompt_tuning", "p_tuning"):
        stacks = 2 if case.shape.kind is StackKind.ENCODER_DECODER else 1
        return case.counts(prompt_length=stacks * case.integer("prompt_length", 1)).trained
    if case.method.name != "ia3" or case.shape.family not in _PEFT_IA3:
        return None
    return count_edits(_scaling(_PEFT_IA3[case.shape.family]), case.shape).trained


def _scaling(ports: Iterable[Port]) -> tuple[Edit, ...]:
    return tuple(
        Edit(
            site=Site.FFN if port in (Port.M, Port.F) else Site.ATTENTION,
            write=port,
            read=port,
            form=Diagonal(),
            gate=Multiply(),
        )
        for port in ports
    )


def prefix_of_peft(case: MethodCase, *, is_projected: bool) -> int | None:
    """Count one table, for the decoder's self-attention if there is one; its network is as wide as the keys."""
    if case.method.name != "prefix_tuning":
        return None
    width, is_double = case.shape.key_value_width, case.shape.kind is StackKind.ENCODER_DECODER
    (edit,) = case.edits(reparameterization_width=width)
    form = edit.form if is_projected else replace(edit.form, reparameterization=None)
    site = Site.DECODER_SELF if is_double else edit.site
    return count_edits((replace(edit, form=form, site=site),), replace(case.shape, width=width)).trained


def adapterhub(case: MethodCase) -> int | None:
    """Count as the library adapters: no norms, no adapter at cross-attention."""
    if "adapterhub" not in case.method.codes:
        return None
    if case.method.name == "ia3":  # scales the output of the module it wraps: W_1, or the down projection
        last = Port.F if case.shape.gated_ffn else Port.M
        return count_edits(_scaling((Port.K, Port.V, last)), case.shape).trained
    edits: list[Edit] = []
    for edit in case.edits(norm="none", bias="no"):
        is_adapter = isinstance(edit.form, Bottleneck | Phm) and edit.site is Site.ATTENTION
        sites = (Site.ENCODER_SELF, Site.DECODER_SELF) if is_adapter else (edit.site,)  # none at cross-attention
        edits += [replace(edit, site=site) for site in sites if case.shape.sublayers(site)]
    return count_edits(tuple(edits), case.shape).trained


def adapters(case: MethodCase) -> int | None:
    """Count Houlsby adapters alone, without norms."""
    return case.counts(norm="none").with_bias if "houlsby" in case.method.codes else None


def original_trained(case: MethodCase) -> int | None:
    """Count adapters, every LayerNorm of the backbone and the task head."""
    alone = adapters(case)
    if alone is None or not case.is_encoder:
        return None
    norms = case.attentions + case.blocks + case.shape.stack_norms
    labels = case.integer("labels", 2)
    return alone + 2 * case.shape.width * norms + (case.shape.width + 1) * labels


def loralib(case: MethodCase) -> int | None:
    """Count LoRA without biases."""
    return case.counts(bias="no").trained if case.method.name == "lora_qv" else None


def kept_half_percent(case: MethodCase) -> int | None:
    """Count the weights that diff pruning changes at 0.5% of the backbone."""
    return case.counts(fraction=0.005).stored if case.method.name == "diff_pruning" else None


def first_stage(case: MethodCase) -> int | None:
    """Count a change and a gate for every weight of diff pruning, and a gate for every tensor."""
    if case.method.name != "diff_pruning":
        return None
    shape = case.shape
    # a weight and a bias of the pooler of encoders, one matrix of the head of decoders
    unused = 0 if not shape.unused_parameters else 2 if case.is_encoder else 1
    return 2 * shape.parameters + case.integer("tensors", shape.parameter_tensors + unused)


@dataclass(frozen=True, slots=True)
class Convention:
    """A counting convention.

    Attributes:
        count: Function from a method to its parameters; None where the convention does not apply.
        meaning: One line.
    """

    count: Callable[[MethodCase], int | None]
    meaning: str


CONVENTIONS: Mapping[str, Convention] = {
    "weights_only": Convention(
        lambda case: case.counts().weights_only,
        "matrices alone, of tables what is left after training (He et al. 2022, appendix B)",
    ),
    "with_bias": Convention(lambda case: case.counts().with_bias, "weights_only and the biases of the projections"),
    "stored": Convention(
        stored, "what must be saved after training; of the multi-head adapter with the norms of its released code"
    ),
    "trained": Convention(lambda case: case.counts().trained, "what is trained here"),
    "trained_mlp": Convention(
        trained_mlp, f"what is trained if an MLP makes the tables (hidden width {_LI_MIDDLE} unless set)"
    ),
    "per_query_head": Convention(partial(weights_per_head, heads=Heads.QUERY), "weights with a block per query head"),
    "per_kv_head": Convention(
        partial(weights_per_head, heads=Heads.KEY_VALUE), "weights with a block per key/value head"
    ),
    "unify_trained": Convention(
        unify_trained,
        "trained by the code of He et al. 2022: prefix MLPs for three kinds of attention, norms at attention",
    ),
    "unify_requires_grad": Convention(
        unify_requires_grad, "unify_trained, with the second, unused adapter beside every FFN of an encoder"
    ),
    "unify_receiving_grad": Convention(unify_receiving_grad, "the part of unify_requires_grad that gets gradients"),
    "impl": Convention(
        impl, "what Chen et al. 2022 print the percentage of: with biases, those of LoRA on all but encoders"
    ),
    "repo_config_used": Convention(
        partial(mam_inducer, norms=1), "impl, with the norm of the FFN adapter that the released configuration has"
    ),
    "repo_config_requires_grad": Convention(
        partial(mam_inducer, norms=3), "repo_config_used, with two norms a block that are never used"
    ),
    "peft": Convention(peft, "as PEFT: prompts for both stacks, (IA)³ where its defaults put it"),
    "peft_flat": Convention(
        partial(prefix_of_peft, is_projected=False),
        "as PEFT: one table, of an encoder-decoder for the decoder's self-attention alone",
    ),
    "peft_projection": Convention(
        partial(prefix_of_peft, is_projected=True), "peft_flat trained through an MLP as wide as the keys"
    ),
    "adapterhub": Convention(adapterhub, "trained by the library adapters: no norms, no adapter at cross-attention"),
    "adapters": Convention(adapters, "the adapters alone, without norms"),
    "original_trained": Convention(
        original_trained, "adapters, every LayerNorm of the backbone and the task head (Houlsby et al. 2019)"
    ),
    "loralib": Convention(loralib, "as loralib: no biases"),
    "stored_nonzero_0_5pct": Convention(
        kept_half_percent, "weights that differ in the end when 0.5% may; their places not counted"
    ),
    "trained_stage1": Convention(
        first_stage, "a change and a gate for every weight, pooler included, and a gate for every tensor"
    ),
}
"""Conventions by name, as in tables and JSON; those of this package first."""


def conventions(method: str, shape: BackboneShape, settings: HyperParameterValues | None = None) -> dict[str, int]:
    """Return the parameters of a published method by every counting convention that applies.

    BitFit counts 0 if the backbone has no bias, although it cannot be built there.

    Args:
        settings: Hyper-parameter values by name or alias; the rest keep their defaults.

    Raises:
        UnknownMethodError: If there is no such method, or it has no such setting.
        InvalidEditError: If the method is not valid on the backbone.
    """
    published = published_method(method)
    values = {name: value for name, value in published.values(settings).items() if value is not None}
    case = MethodCase(method=published, shape=shape, values=values)
    counts = {name: convention.count(case) for name, convention in CONVENTIONS.items()}
    return {name: number for name, number in counts.items() if number is not None}
