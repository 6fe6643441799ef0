"""Colours of every plot: some for what is compared, one per functional form; told apart also by who sees few."""

from collections.abc import Mapping
from itertools import cycle

from search_space.forms import FORMS

BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#8C8C8C",
)
"""Colours that people who see few of them tell apart (Okabe and Ito 2008), on light and on dark ground."""

RESOLVED, UNRESOLVED, PUBLISHED, DISCOVERED = BLUE, GREY, ORANGE, BLUE

_PALETTE = (
    "#d55e00",
    "#0088cc",
    "#009e73",
    "#b8860b",
    "#cc79a7",
    "#7f7f7f",
    "#8c6bd1",
    "#5a4fcf",
    "#a0522d",
    "#4d9221",
    "#c51b7d",
    "#2a9d8f",
    "#8a8a2a",
)
"""In the order in which forms are registered; later ones begin anew."""

NOTHING = "#9a9a9a"
"""Of a side without edits."""

_OTHER = "#666699"

FORM_COLOURS: Mapping[str, str] = dict(zip(FORMS, cycle(_PALETTE), strict=False)) | {"none": NOTHING}
"""By name of a form, those of other packages included."""


def colour_of(form: str | None) -> str:
    """Of the edits of a side; several forms, joined by ``+``, have the colour of the first."""
    return FORM_COLOURS.get((form or "none").partition("+")[0], _OTHER)
