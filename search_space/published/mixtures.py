"""What He et al. 2022 mixed: one method at attention, another at the FFN."""

from dataclasses import replace

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port
from search_space.edit import Edit
from search_space.forms import Init, LowRank, OwnNorm
from search_space.gates import ConvexSampleGate, SampleGate
from search_space.published.edits import (
    adapter,
    at_ffn,
    at_query_and_value,
    lora_on_ffn,
    parallel_at_attention,
    parallel_at_ffn,
    prefix,
    scaled,
)
from search_space.published.method import PublishedMethod, Values
from search_space.published.settings import (
    ACTIVATION,
    ALPHA,
    HE,
    MIDDLE,
    PREFIX,
    SCALE,
    adapter_options,
    bottleneck,
    rank,
    reads_at_attention,
    reads_at_ffn,
)

_AT_ATTENTION = bottleneck(30, name="attention_bottleneck", alias="ra")

_MAO = "Mao et al. 2022, UniPELT: A Unified Framework for Parameter-Efficient Language Model Tuning, ACL"


def _unipelt(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    """LoRA without a scale, a prefix and a Pfeiffer adapter, each under a gate of the sample."""
    return (
        *at_query_and_value(LowRank(width=int(values["rank"])), SampleGate()),
        prefix(values, ConvexSampleGate()),
        at_ffn(Port.SUM, Port.SUM, adapter(values), SampleGate()),
    )


MIXTURES: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="mam_adapter",
        title="MAM adapter",
        citation=HE,
        hyperparameters=(PREFIX, bottleneck(512), SCALE, MIDDLE, reads_at_ffn(), *adapter_options(init=Init.LORA)),
        build=lambda shape, values: (prefix(values), parallel_at_ffn(values, scaled(values))),
    ),
    PublishedMethod(
        name="pa_attn_plus_pa_ffn",
        title="parallel adapters at attention and FFN",
        citation=f"{HE}, table 6",
        hyperparameters=(
            _AT_ATTENTION,
            bottleneck(512),
            reads_at_attention(name="attention_read", alias="reada"),
            reads_at_ffn(),
            *adapter_options(norm=OwnNorm.INPUT),
        ),
        build=lambda shape, values: (
            parallel_at_attention(values, write=Port.O, size="attention_bottleneck", read="attention_read"),
            parallel_at_ffn(values, normed=False),
        ),
    ),
    PublishedMethod(
        name="prefix_plus_lora_ffn",
        title="prefix tuning and LoRA on the FFN",
        citation=f"{HE}, table 6",
        hyperparameters=(PREFIX, rank(102), ALPHA, MIDDLE),
        build=lambda shape, values: (prefix(values), *lora_on_ffn(shape, values)),
    ),
    PublishedMethod(
        name="unipelt",
        title="UniPELT",
        citation=_MAO,
        hyperparameters=(
            rank(8),
            replace(PREFIX, default=10),
            bottleneck(48, alias="ra"),
            MIDDLE,
            ACTIVATION,
            *adapter_options(),
        ),
        attention_share=0.35,
        build=_unipelt,
    ),
)
