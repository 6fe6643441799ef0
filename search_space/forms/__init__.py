"""Functional forms: the function that an edit computes from its input.

A new form is a file here and an entry of `FORMS`.
"""

from collections.abc import Mapping

from search_space.forms.bottleneck import Bottleneck as Bottleneck
from search_space.forms.bottleneck import Init as Init
from search_space.forms.bottleneck import OwnNorm as OwnNorm
from search_space.forms.constant import Constant as Constant
from search_space.forms.diagonal import Diagonal as Diagonal
from search_space.forms.dora import Dora as Dora
from search_space.forms.encoded_prompt import EncodedPrompt as EncodedPrompt
from search_space.forms.encoded_prompt import PromptEncoder as PromptEncoder
from search_space.forms.form import Form as Form
from search_space.forms.form import PeftKind as PeftKind
from search_space.forms.form import SizedForm as SizedForm
from search_space.forms.full import Full as Full
from search_space.forms.intrinsic import Intrinsic as Intrinsic
from search_space.forms.lowrank import LowRank as LowRank
from search_space.forms.phm import Phm as Phm
from search_space.forms.prompt import Prompt as Prompt
from search_space.forms.softmax_memory import SoftmaxMemory as SoftmaxMemory
from search_space.forms.sparse import Sparse as Sparse
from search_space.forms.vera import Vera as Vera

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
"""Functional forms by name."""
