"""Colours of all plots: for comparisons, and one per functional form; safe for colour-blind readers."""

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
"""Colours for colour-blind readers (Okabe and Ito 2008), on light and on dark backgrounds."""

RESOLVED, UNRESOLVED, PUBLISHED, DISCOVERED = BLUE, GREY, ORANGE, BLUE

_PALETTE = (
    "#d55e00",
    "#0088cc",
    "#009e73",
    "#b8860b",
    "#cc79a7",
    "#56b4e9",
    "#8c6bd1",
    "#5a4fcf",
    "#a0522d",
    "#4d9221",
    "#c51b7d",
    "#2a9d8f",
    "#8a8a2a",
)
"""Colours in the order in which forms are registered; after the last it begins again."""

NOTHING = "#9a9a9a"
"""Colour of a side without edits."""

_OTHER = "#666699"

FORM_COLOURS: Mapping[str, str] = dict(zip(FORMS, cycle(_PALETTE), strict=False)) | {"none": NOTHING}
"""Colours by name of the form, those of other packages included."""


def colour_of(form: str | None) -> str:
    """Return the colour of a side's edits; several forms, joined by ``+``, have the colour of the first."""
    return FORM_COLOURS.get((form or "none").partition("+")[0], _OTHER)
