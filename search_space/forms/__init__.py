"""Functional forms: what an edit computes of the tensor it reads. A new form is a file here and a word in `FORMS`."""

from collections.abc import Mapping

from search_space.forms.bottleneck import Bottleneck, Init, OwnNorm
from search_space.forms.constant import Constant
from search_space.forms.diagonal import Diagonal
from search_space.forms.dora import Dora
from search_space.forms.encoded_prompt import EncodedPrompt, PromptEncoder
from search_space.forms.form import Form, SizedForm
from search_space.forms.full import Full
from search_space.forms.intrinsic import Intrinsic
from search_space.forms.lowrank import LowRank
from search_space.forms.phm import Phm
from search_space.forms.prompt import Prompt
from search_space.forms.softmax_memory import SoftmaxMemory
from search_space.forms.sparse import Sparse
from search_space.forms.vera import Vera

__all__ = [
    "FORMS",
    "Bottleneck",
    "Constant",
    "Diagonal",
    "Dora",
    "EncodedPrompt",
    "Form",
    "Full",
    "Init",
    "Intrinsic",
    "LowRank",
    "OwnNorm",
    "Phm",
    "Prompt",
    "PromptEncoder",
    "SizedForm",
    "SoftmaxMemory",
    "Sparse",
    "Vera",
]

_KINDS: tuple[type[Form], ...] = (
    SoftmaxMemory,
    Bottleneck,
    LowRank,
    Phm,
    Diagonal,
    Constant,
    Prompt,
    EncodedPrompt,
    Full,
    Sparse,
    Intrinsic,
    Dora,
    Vera,
)

FORMS: Mapping[str, type[Form]] = {form.name: form for form in _KINDS}
"""Every functional form by its name."""
