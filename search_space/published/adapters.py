"""Adapters: bottlenecks after or beside attention and the FFN."""

from dataclasses import replace

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Init, OwnNorm, Phm
from search_space.gates import Add, LearnedScale
from search_space.published.edits import (
    adapter,
    at_attention,
    at_ffn,
    middle_of,
    parallel_at_attention,
    parallel_at_ffn,
    scaled,
    sequential_at_attention,
    sequential_at_ffn,
)
from search_space.published.method import HyperParameter, PublishedMethod, Values
from search_space.published.settings import (
    ACTIVATION,
    CHEN,
    HE,
    HOULSBY,
    LABELS,
    MIDDLE,
    SCALE,
    adapter_options,
    bottleneck,
    reads_at_attention,
    reads_at_ffn,
)

_MAHABADI = "Karimi Mahabadi et al. 2021, Compacter: Efficient Low-Rank Hypercomplex Adapter Layers, NeurIPS"
_PFEIFFER = "Pfeiffer et al. 2021, AdapterFusion: Non-Destructive Task Composition for Transfer Learning, EACL"

_PLACE = HyperParameter(
    name="place",
    alias="place",
    default="block",
    meaning="output of the block (Lin et al. 2020, whom the paper cites), or of its self-attention (released code)",
    choices=("block", "attn"),
)
_WRITE = HyperParameter(
    name="write",
    alias="write",
    default=Port.O.value,
    meaning="attention's output, or its input to the output projection (released code of He et al. 2022)",
    choices=(Port.O.value, Port.CONCAT.value),
)


def _single(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    form = adapter(values)
    if values["place"] == "block":
        return (at_ffn(Port.SUM, Port.SUM, form),)
    sites = [site for site in (Site.ENCODER_SELF, Site.DECODER_SELF) if shape.sublayers(site)]
    return tuple(Edit(site=site, write=Port.O, read=Port.O, form=form, gate=Add()) for site in sites)


def _multi_head(values: Values) -> Edit:
    form = Bottleneck(
        width=int(values["bottleneck"]),
        heads=Heads.QUERY,
        bias=False,
        init=Init.BERT,
        reparameterization=middle_of(values),
    )
    return at_attention(Port.HEAD, Port.Q, form)


def _phm(shape: BackboneShape, values: Values) -> Phm:
    n = int(values["products"])
    width = int(values["bottleneck"]) if "bottleneck" in values else max(1, shape.width // 32 // n) * n
    rank = values.get("factor_rank")
    return Phm(width=width, n=n, factor_rank=None if rank is None else int(rank), shared=rank is not None)


def _phm_at_both(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    form = _phm(shape, values)
    return at_attention(Port.O, Port.O, form), at_ffn(Port.F, Port.F, form)


_PRODUCTS = HyperParameter(name="products", alias="n", default=4, meaning="number of Kronecker products")
_FACTOR_RANK = HyperParameter(name="factor_rank", alias="k", default=1, meaning="rank of their second factors")
_PHM_WIDTH = HyperParameter(
    name="bottleneck",
    alias="r",
    default=None,
    meaning="hidden width, a multiple of n; a 32nd of the backbone's unless set",
    is_size=True,
)

_SEQUENTIAL: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="sequential_adapter_attn",
        title="sequential adapter at attention",
        citation=HE,
        hyperparameters=(bottleneck(64), *adapter_options(norm=OwnNorm.INPUT)),
        build=lambda shape, values: (sequential_at_attention(values),),
    ),
    PublishedMethod(
        name="sequential_adapter_ffn",
        title="sequential adapter at the FFN",
        citation=HE,
        hyperparameters=(bottleneck(64), *adapter_options()),
        build=lambda shape, values: (sequential_at_ffn(values),),
    ),
    PublishedMethod(
        name="sequential_adapter_single",
        title="one sequential adapter a block",
        citation=f"{CHEN}, table 1",
        hyperparameters=(bottleneck(108), _PLACE, *adapter_options(norm=OwnNorm.INPUT)),
        build=_single,
    ),
    PublishedMethod(
        name="houlsby_adapter",
        title="Houlsby adapter",
        citation=f"{HOULSBY}; as in the released code of He et al. 2022",
        hyperparameters=(bottleneck(64), *adapter_options(norm=OwnNorm.INPUT), ACTIVATION, LABELS),
        build=lambda shape, values: (sequential_at_attention(values), sequential_at_ffn(values, normed=False)),
    ),
    PublishedMethod(
        name="houlsby_adapter_original",
        title="Houlsby adapter of its paper",
        citation=HOULSBY,
        hyperparameters=(
            bottleneck(64),
            *adapter_options(init=Init.HOULSBY),
            replace(ACTIVATION, default=Activation.GELU),
        ),
        build=lambda shape, values: (sequential_at_attention(values), sequential_at_ffn(values)),
    ),
    PublishedMethod(
        name="pfeiffer_adapter",
        title="Pfeiffer adapter",
        citation=_PFEIFFER,
        hyperparameters=(bottleneck(64), *adapter_options(), ACTIVATION),
        build=lambda shape, values: (at_ffn(Port.SUM, Port.SUM, adapter(values)),),
    ),
)

_PARALLEL: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="parallel_adapter_attn",
        title="parallel adapter at attention",
        citation=HE,
        hyperparameters=(bottleneck(64), reads_at_attention(), _WRITE, *adapter_options(norm=OwnNorm.INPUT)),
        build=lambda shape, values: (parallel_at_attention(values, write=Port(str(values["write"]))),),
    ),
    PublishedMethod(
        name="parallel_adapter_attn_concat",
        title="parallel adapter before the output projection",
        citation=f"{HE}, released code",
        hyperparameters=(bottleneck(64), *adapter_options(norm=OwnNorm.INPUT)),
        build=lambda shape, values: (at_attention(Port.CONCAT, Port.X_ATTN, adapter(values)),),
    ),
    PublishedMethod(
        name="parallel_adapter_ffn",
        title="parallel adapter at the FFN",
        citation=HE,
        hyperparameters=(bottleneck(64), reads_at_ffn(), *adapter_options()),
        build=lambda shape, values: (parallel_at_ffn(values),),
    ),
    PublishedMethod(
        name="scaled_parallel_adapter_ffn",
        title="scaled parallel adapter at the FFN",
        citation=HE,
        hyperparameters=(bottleneck(512), SCALE, reads_at_ffn(), *adapter_options(init=Init.LORA)),
        build=lambda shape, values: (parallel_at_ffn(values, scaled(values)),),
    ),
    PublishedMethod(
        name="scaled_parallel_adapter_ffn_learned",
        title="scaled parallel adapter at the FFN, learned scale",
        citation=f"{HE}, table 5",
        hyperparameters=(bottleneck(512), reads_at_ffn(), *adapter_options(init=Init.LORA)),
        build=lambda shape, values: (parallel_at_ffn(values, LearnedScale()),),
    ),
    PublishedMethod(
        name="multihead_parallel_adapter",
        title="multi-head parallel adapter",
        citation=f"{HE}, table 4",
        hyperparameters=(bottleneck(30), MIDDLE),
        build=lambda shape, values: (_multi_head(values),),
    ),
)

_PHM: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="compacter",
        title="Compacter",
        citation=_MAHABADI,
        hyperparameters=(_PHM_WIDTH, _PRODUCTS, _FACTOR_RANK),
        build=_phm_at_both,
    ),
    PublishedMethod(
        name="compacter_pp",
        title="Compacter++",
        citation=_MAHABADI,
        hyperparameters=(_PHM_WIDTH, _PRODUCTS, _FACTOR_RANK),
        build=lambda shape, values: (at_ffn(Port.F, Port.F, _phm(shape, values)),),
    ),
    PublishedMethod(
        name="phm_adapter",
        title="PHM adapter",
        citation=_MAHABADI,
        hyperparameters=(_PHM_WIDTH, _PRODUCTS),
        build=_phm_at_both,
    ),
)

ADAPTERS: tuple[PublishedMethod, ...] = (*_SEQUENTIAL, *_PARALLEL, *_PHM)
