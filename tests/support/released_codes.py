"""Parameter counts of published methods in papers and released codes.

Every number is a count of this package, of the method's configuration or of a documented variation of it. Extra
modules of a code (unused networks, norms, biases of the task head) are added. No number is looked up.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.conventions import conventions
from search_space.dimensions import Heads, Insertion, Port, Site, StackKind
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Bottleneck, Diagonal, Phm
from search_space.gates import Multiply
from search_space.parameter_counts.counts import Counts, count, count_edits
from search_space.published import HyperParameterValues, PublishedMethod, published_method

_HE_MIDDLE = 800
_LI_MIDDLE = 512
_HE_STACKS = 3

_ONLY_COUNTED = ("labels", "tensors")
"""Classes of the task head, and parameter tensors of the backbone; they change nothing that is attached."""

_OF_HE = (
    "prefix_tuning",
    "prefix_tuning_additive",
    "sequential_adapter_attn",
    "sequential_adapter_ffn",
    "houlsby_adapter",
    "parallel_adapter_attn",
    "parallel_adapter_attn_concat",
    "parallel_adapter_ffn",
    "scaled_parallel_adapter_ffn",
    "scaled_parallel_adapter_ffn_learned",
    "multihead_parallel_adapter",
    "lora_qv",
    "lora_kv",
    "lora_ffn",
    "mam_adapter",
    "pa_attn_plus_pa_ffn",
    "prefix_plus_lora_ffn",
    "bitfit",
)
"""Methods of the released code of He et al. 2022."""
_OF_CHEN = (
    "prefix_tuning",
    "sequential_adapter_single",
    "lora_qv",
    "mam_adapter",
    "inducer_adaptive",
    "inducer_extension",
    "inducer_gating",
    "inducer",
    "inducer_plus_lora_q",
    "mam_inducer",
    "full_finetuning",
)
"""Methods that Chen et al. 2022 compare."""
_OF_ADAPTERHUB = (
    "prefix_tuning",
    "houlsby_adapter",
    "pfeiffer_adapter",
    "scaled_parallel_adapter_ffn",
    "compacter",
    "compacter_pp",
    "lora_qv",
    "mam_adapter",
    "unipelt",
    "ia3",
)
"""Methods of the library adapters."""
_OF_HOULSBY = ("houlsby_adapter", "houlsby_adapter_original")
"""Methods of Houlsby et al. 2019."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCase:
    """A published method with its hyper-parameter values on a backbone.

    Attributes:
        only_counted: Values of `_ONLY_COUNTED`.
    """

    method: PublishedMethod
    shape: BackboneShape
    values: HyperParameterValues
    only_counted: HyperParameterValues

    def edits(self, **changes: float | str) -> tuple[Edit, ...]:
        """Return the edits of the method with other values of the hyper-parameters that it has."""
        settings = dict(self.values) | {name: value for name, value in changes.items() if self.has(name)}
        try:
            return self.method.configuration(self.shape, settings).edits
        except InvalidEditError:
            if self.method.name != "bitfit":  # the biases can be counted even if there are none
                raise
            return ()

    def counts(self, **changes: float | str) -> Counts:
        """Count the method with other values of the hyper-parameters that it has."""
        return count(Configuration(edits=self.edits(**changes)), self.shape)

    def integer(self, name: str, default: int) -> int:
        """Return a number that is set; the default if it is absent."""
        return int({**self.values, **self.only_counted}.get(name, default))

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


def stored_by_he(case: MethodCase) -> int | None:
    """Count the multi-head adapter with the norm of the released code at every attention."""
    if case.method.name != "multihead_parallel_adapter" or case.shape.kind is StackKind.DECODER:
        return None
    return case.counts().stored + 2 * case.shape.width * case.attentions


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


def _edits_of_he(case: MethodCase) -> tuple[Edit, ...] | None:
    """Return the edits of a method in the code of He et al. 2022; None if the code lacks it."""
    if case.method.name not in _OF_HE or case.shape.kind is StackKind.DECODER:
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
    edits = _edits_of_he(case)
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
    edits, trained = _edits_of_he(case), unify_trained(case)
    if edits is None or trained is None or not case.is_encoder:
        return None
    parallel_ffn = tuple(
        edit
        for edit in edits
        if edit.site is Site.FFN and isinstance(edit.form, Bottleneck) and edit.insertion is Insertion.PARALLEL
    )
    return trained + count_edits(parallel_ffn, case.shape).stored


def unify_receiving_grad(case: MethodCase) -> int | None:
    """Count without the modules that their RoBERTa does not use."""
    edits = _edits_of_he(case)
    return None if edits is None or not case.is_encoder else _trained_by_he(case, edits, stacks=None)


def impl(case: MethodCase) -> int | None:
    """Count as Chen et al. 2022, for the methods that they compare."""
    if case.method.name not in _OF_CHEN:
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


def projected_prefix_of_peft(case: MethodCase) -> int | None:
    """Count the table of ``peft``, made by an MLP as wide as the keys."""
    if case.method.name != "prefix_tuning":
        return None
    width, is_double = case.shape.key_value_width, case.shape.kind is StackKind.ENCODER_DECODER
    (edit,) = case.edits(reparameterization_width=width)
    site = Site.DECODER_SELF if is_double else edit.site
    return count_edits((replace(edit, site=site),), replace(case.shape, width=width)).trained


def adapterhub(case: MethodCase) -> int | None:
    """Count as the library adapters: no norms, no adapter at cross-attention."""
    if case.method.name not in _OF_ADAPTERHUB:
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
    return case.counts(norm="none").with_bias if case.method.name in _OF_HOULSBY else None


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


RELEASED_CODES: Mapping[str, Callable[[MethodCase], int | None]] = {
    "stored": stored_by_he,
    "trained_mlp": trained_mlp,
    "per_query_head": partial(weights_per_head, heads=Heads.QUERY),
    "per_kv_head": partial(weights_per_head, heads=Heads.KEY_VALUE),
    "unify_trained": unify_trained,
    "unify_requires_grad": unify_requires_grad,
    "unify_receiving_grad": unify_receiving_grad,
    "impl": impl,
    "repo_config_used": partial(mam_inducer, norms=1),
    "repo_config_requires_grad": partial(mam_inducer, norms=3),
    "peft_projection": projected_prefix_of_peft,
    "adapterhub": adapterhub,
    "adapters": adapters,
    "original_trained": original_trained,
    "loralib": loralib,
    "stored_nonzero_0_5pct": kept_half_percent,
    "trained_stage1": first_stage,
}
"""Counts by name, as in ``golden_params.yaml``; None where a count does not apply to a method."""


def attached_settings(settings: HyperParameterValues) -> dict[str, float | str]:
    """Return the settings without those that are only counted."""
    return {name: value for name, value in settings.items() if name not in _ONLY_COUNTED}


def all_counts(method: str, shape: BackboneShape, settings: HyperParameterValues | None = None) -> dict[str, int]:
    """Return the parameters of a published method by every convention of the package and every released code."""
    published, attached = published_method(method), attached_settings(settings or {})
    case = MethodCase(
        method=published,
        shape=shape,
        values={name: value for name, value in published.values(attached).items() if value is not None},
        only_counted={name: value for name, value in (settings or {}).items() if name in _ONLY_COUNTED},
    )
    counts = {name: counted_by(case) for name, counted_by in RELEASED_CODES.items()}
    return conventions(method, shape, attached) | {name: one for name, one in counts.items() if one is not None}
