"""Prefixes and prompts: rows that attention sees beside the tokens."""

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.forms import EncodedPrompt, Prompt, PromptEncoder
from search_space.gates import Add, Prepend
from search_space.published.edits import prefix
from search_space.published.method import HyperParameter, PublishedMethod, Values
from search_space.published.settings import HE, LI, MIDDLE, PREFIX

_LESTER = "Lester et al. 2021, The Power of Scale for Parameter-Efficient Prompt Tuning, EMNLP"
_LIU = "Liu et al. 2021, GPT Understands, Too, arXiv 2103.10385"
_YANG = "Yang & Liu 2022, On Robust Prefix-Tuning for Text Classification, ICLR"

_LENGTH = HyperParameter(name="prompt_length", alias="l", default=20, meaning="rows of the prompt", is_size=True)
_HIDDEN = HyperParameter(name="hidden", alias="h", default=128, meaning="hidden width of the prompt's encoder")
_ENCODER = HyperParameter(
    name="encoder",
    alias="encoder",
    default=PromptEncoder.MLP.value,
    meaning="network that makes the prompt while training; the original has an LSTM",
    choices=tuple(encoder.value for encoder in PromptEncoder),
)


def _prompt(form: Prompt | EncodedPrompt) -> Edit:
    return Edit(site=Site.EMBEDDING, write=Port.EMBEDDING, read=None, form=form, gate=Prepend())


def _p_tuning(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    form = EncodedPrompt(
        width=int(values["prompt_length"]),
        encoder=PromptEncoder(str(values["encoder"])),
        hidden=int(values["hidden"]),
    )
    return (_prompt(form),)


PREFIXES: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="prefix_tuning",
        title="prefix tuning",
        citation=LI,
        hyperparameters=(PREFIX, MIDDLE),
        build=lambda shape, values: (prefix(values),),
    ),
    PublishedMethod(
        name="prefix_tuning_additive",
        title="prefix tuning without gating",
        citation=f"{HE}, table 4",
        hyperparameters=(PREFIX, MIDDLE),
        build=lambda shape, values: (prefix(values, Add()),),
    ),
    PublishedMethod(
        name="robust_prefix_tuning",
        title="robust prefix tuning",
        citation=_YANG,
        hyperparameters=(PREFIX, MIDDLE),
        build=lambda shape, values: (prefix(values, robust=True),),
    ),
)

PROMPTS: tuple[PublishedMethod, ...] = (
    PublishedMethod(
        name="prompt_tuning",
        title="prompt tuning",
        citation=_LESTER,
        hyperparameters=(_LENGTH,),
        build=lambda shape, values: (_prompt(Prompt(width=int(values["prompt_length"]))),),
    ),
    PublishedMethod(
        name="p_tuning",
        title="P-tuning",
        citation=_LIU,
        hyperparameters=(_LENGTH, _HIDDEN, _ENCODER),
        build=_p_tuning,
    ),
)
