"""Counting conventions: the parameter counts of a published method that users compare."""

from collections.abc import Mapping
from dataclasses import asdict, replace

from search_space.backbones import family_of_shape
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site, StackKind
from search_space.errors import InvalidEditError
from search_space.forms import LowRank
from search_space.parameter_counts.counts import Counts, count, count_edits
from search_space.published import HyperParameterValues, published_method

CONVENTIONS: Mapping[str, str] = {
    "weights_only": "matrices alone, of tables what is left after training (He et al. 2022, appendix B)",
    "with_bias": "weights_only and the biases of the projections",
    "stored": "what must be saved after training, which the budget limits",
    "trained": "what is trained here",
    "peft": "as PEFT: (IA)³ at its default modules; LoRA with one A for a fused projection; for two stacks two "
    "prompts, and prefixes at decoder self-attention",
}
"""Meanings of the conventions by name."""

_BERT = (Port.K, Port.V, Port.CONCAT, Port.M)
_KEY_VALUE = (Port.K, Port.V, Port.M)
_QUERY_VALUE = (Port.Q, Port.V, Port.M)
# PEFT matches the end of module names, and scales fused projections as a whole.
_PEFT_IA3: Mapping[str, tuple[Port, ...]] = {
    "bart": _QUERY_VALUE,
    "bert": _BERT,
    "roberta": _BERT,
    "gpt2": (Port.Q, Port.K, Port.V, Port.M),
    "llama": _KEY_VALUE,
    "t5": _KEY_VALUE,
    "qwen2": _QUERY_VALUE,
    "qwen3": _QUERY_VALUE,
}


def conventions(method: str, shape: BackboneShape, settings: HyperParameterValues | None = None) -> dict[str, int]:
    """Return the parameters of a published method by every counting convention that applies.

    BitFit counts 0 if the backbone has no bias, although it cannot be built there. The convention ``peft`` applies to
    the methods that PEFT counts in a way of its own.

    Args:
        settings: Hyper-parameter values by name or alias; the rest keep their defaults.

    Raises:
        UnknownMethodError: If there is no such method, or it has no such setting.
        InvalidEditError: If the method is not valid on the backbone.
    """
    try:
        configuration = published_method(method).configuration(shape, settings)
    except InvalidEditError:
        if method != "bitfit":
            raise
        configuration = Configuration(edits=())
    counts = count(configuration, shape)
    peft = _counted_by_peft(method, configuration, counts, shape)
    return asdict(counts) | ({} if peft is None else {"peft": peft})


def _counted_by_peft(method: str, configuration: Configuration, counts: Counts, shape: BackboneShape) -> int | None:
    has_two_stacks = shape.kind is StackKind.ENCODER_DECODER
    match method:
        case "prompt_tuning" | "p_tuning":
            return counts.trained + has_two_stacks * counts.stored  # one network, a prompt for each stack
        case "prefix_tuning":
            (prefix,) = configuration.edits
            site = Site.DECODER_SELF if has_two_stacks else prefix.site
            return count_edits((replace(prefix, site=site),), shape).stored
        case "ia3" if shape.family in _PEFT_IA3:
            sites = {port: Site.FFN if port is Port.M else Site.ATTENTION for port in _PEFT_IA3[shape.family]}
            return sum(shape.port_width(port) * len(shape.sublayers(site)) for port, site in sites.items())
        case "lora_attention" | "lora_all":
            repeated = _repeated_inputs(configuration, shape)
            return counts.trained - repeated if repeated else None
        case _:
            return None


def _repeated_inputs(configuration: Configuration, shape: BackboneShape) -> int:
    """Count the matrices A of LoRA but for one of each fused projection, to which PEFT gives one."""
    ports, seen, repeated = family_of_shape(shape).ports(shape).ports, set(), 0
    for edit in configuration.edits:
        if not isinstance(edit.form, LowRank) or edit.read is None:
            continue
        for place in shape.sublayers(edit.site):
            projection = (place, ports[place.stack, place.site, edit.write].module)
            repeated += edit.form.width * shape.port_width(edit.read) * (projection in seen)
            seen.add(projection)
    return repeated
