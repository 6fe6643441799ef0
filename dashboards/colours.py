"""One colour per functional form, in every plot; told apart also by who sees red and green alike."""

from collections.abc import Mapping

from search_space.forms import FORMS

_OF_FORMS: Mapping[str, str] = {
    "softmax_memory": "#d55e00",
    "bottleneck": "#0088cc",
    "lowrank": "#009e73",
    "phm": "#b8860b",
    "diag": "#cc79a7",
    "const": "#7f7f7f",
    "prompt": "#8c6bd1",
    "encoded_prompt": "#5a4fcf",
    "full": "#a0522d",
    "sparse": "#4d9221",
    "intrinsic": "#c51b7d",
}
NOTHING = "#9a9a9a"
"""Of a side without edits."""

_OTHER = "#666699"

FORM_COLOURS: Mapping[str, str] = {name: _OF_FORMS.get(name, _OTHER) for name in FORMS} | {"nothing": NOTHING}
"""By name of a form, those of other packages included."""


def colour_of(form: str | None) -> str:
    """Of the edits of a side; several forms, joined by ``+``, have the colour of the first."""
    return FORM_COLOURS.get((form or "nothing").partition("+")[0], _OTHER)
