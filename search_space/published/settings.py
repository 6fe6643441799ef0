"""Citations and hyper-parameters that several published methods share."""

from search_space.dimensions import Activation, Port
from search_space.forms import Init, OwnNorm
from search_space.published.method import HyperParameter

HE = "He et al. 2022, Towards a Unified View of Parameter-Efficient Transfer Learning, ICLR"
CHEN = "Chen et al. 2022, Inducer-tuning: Connecting Prefix-tuning and Adapter-tuning, EMNLP"
HOULSBY = "Houlsby et al. 2019, Parameter-Efficient Transfer Learning for NLP, ICML"
HU = "Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models, ICLR"
LI = "Li & Liang 2021, Prefix-Tuning: Optimizing Continuous Prompts for Generation, ACL"
KOPICZKO = "Kopiczko et al. 2024, VeRA: Vector-based Random Matrix Adaptation, ICLR"
LIU_DORA = "Liu et al. 2024, DoRA: Weight-Decomposed Low-Rank Adaptation, ICML"

PREFIX = HyperParameter(name="prefix_length", alias="l", default=30, meaning="rows of the prefix", is_size=True)
MIDDLE = HyperParameter(
    name="reparameterization_width",
    alias="mid",
    default=None,
    meaning="hidden width of the MLP that makes the tables while training; without, they are trained themselves",
)
SCALE = HyperParameter(
    name="scale",
    alias="s",
    default=4,
    meaning="factor of the output; He et al. 2022 took 4 for generation, 2 for classification",
    is_whole=False,
)
ALPHA = HyperParameter(name="scale", alias="s", default=2, meaning="alpha / rank", is_whole=False)
BIAS = HyperParameter(
    name="bias",
    alias="bias",
    default="no",
    meaning="a bias for every adapted matrix, as in the generation code of Chen et al. 2022",
    choices=("no", "yes"),
)
LABELS = HyperParameter(
    name="labels",
    alias="labels",
    default=2,
    meaning="classes of the task head, for the conventions that count it",
    is_counted_only=True,
)


def bottleneck(default: int, *, name: str = "bottleneck", alias: str = "r") -> HyperParameter:
    """The hidden width of an adapter."""
    return HyperParameter(name=name, alias=alias, default=default, meaning="hidden width", is_size=True)


def rank(default: int) -> HyperParameter:
    """The rank of LoRA."""
    return HyperParameter(name="rank", alias="r", default=default, meaning="rank", is_size=True)


ACTIVATION = HyperParameter(
    name="activation",
    alias="act",
    default=Activation.RELU.value,
    meaning="nonlinearity; Houlsby et al. 2019 took gelu",
    choices=tuple(one.value for one in Activation),
)


def adapter_options(*, norm: OwnNorm = OwnNorm.NONE, init: Init = Init.BERT) -> tuple[HyperParameter, ...]:
    """What sources of one and the same adapter differ in, with the defaults of one of them."""
    return (
        HyperParameter(
            name="norm",
            alias="norm",
            default=norm.value,
            meaning="own LayerNorm on what is read; the released code of He et al. 2022 has one at attention",
            choices=(OwnNorm.NONE.value, OwnNorm.INPUT.value),
        ),
        HyperParameter(
            name="init",
            alias="init",
            default=init.value,
            meaning="how the weights start",
            choices=(Init.BERT.value, Init.LORA.value, Init.HOULSBY.value),
        ),
    )


def reads_at_ffn() -> HyperParameter:
    """What a parallel adapter at the FFN reads; on post-LN backbones both are one tensor."""
    return HyperParameter(
        name="read",
        alias="read",
        default=Port.X_FFN.value,
        meaning="input of the FFN, or the residual stream before its norm (He et al. 2022 on mBART)",
        choices=(Port.X_FFN.value, Port.RES_F.value),
    )


def reads_at_attention(*, name: str = "read", alias: str = "read") -> HyperParameter:
    """What a parallel adapter at attention reads; on post-LN backbones both are one tensor."""
    return HyperParameter(
        name=name,
        alias=alias,
        default=Port.X_ATTN.value,
        meaning="input of attention, or the residual stream before its norm",
        choices=(Port.X_ATTN.value, Port.RES_IN.value),
    )
