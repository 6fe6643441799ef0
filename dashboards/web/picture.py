"""Where the edits of a configuration stand in a block: what each reads and writes, as a picture to be drawn."""

from collections.abc import Sequence
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.words.ports import PORT_NAMES

PORT_WIDTH, PORT_HEIGHT = 62, 24
EDIT_WIDTH, EDIT_HEIGHT = 140, 38

_COLUMN = 106
_EDITS_AT = 256
_PANEL = 410
_GAP = 10
_TOP = 44

# No two tensors that an edit may read or write stand at one height, so that no arrow crosses the box of another.
_ATTENTION = {
    Port.RES_IN: (_COLUMN, 426),
    Port.X_ATTN: (56, 350),
    Port.CTX: (156, 380),
    Port.Q: (36, 236),
    Port.K: (106, 270),
    Port.V: (176, 304),
    Port.HEAD: (_COLUMN, 184),
    Port.CONCAT: (_COLUMN, 138),
    Port.O: (_COLUMN, 94),
    Port.NORM: (_COLUMN, 50),
}
_FFN = {
    Port.RES_F: (_COLUMN, 400),
    Port.X_FFN: (_COLUMN, 340),
    Port.U: (_COLUMN, 262),
    Port.G: (36, 300),
    Port.M: (_COLUMN, 205),
    Port.F: (_COLUMN, 145),
    Port.SUM: (_COLUMN, 95),
    Port.NORM: (_COLUMN, 45),
}
_ATTENTION_FLOWS = "res_in-x_attn res_in-ctx x_attn-q ctx-k ctx-v q-head k-head v-head head-concat concat-o o-norm"
_FFN_FLOWS = "res_f-x_ffn x_ffn-u x_ffn-g u-m g-m m-f f-sum sum-norm"
"""Which tensors arrows join, by their names."""


Drawing = dict[str, Any]
"""Something to be drawn, as what JSON knows."""


def picture_of(configuration: Configuration, shape: BackboneShape | None) -> Drawing:
    """The picture of a configuration: its panels, which words its norms have, and edits outside the blocks.

    Args:
        shape: Of the backbone; None where it is not known, then there are no formulas.
    """
    attention = [edit for edit in configuration.edits if edit.site.is_attention]
    ffn = [edit for edit in configuration.edits if edit.site is Site.FFN and edit.write in _FFN]
    outside = [edit for edit in configuration.edits if edit not in attention and edit not in ffn]
    is_gated = shape.gated_ffn if shape is not None else any(Port.G in (edit.read, edit.write) for edit in ffn)
    places = {port: place for port, place in _FFN.items() if is_gated or port is not Port.G}
    return {
        "panels": [
            _panel("Attention", _ATTENTION, _ATTENTION_FLOWS, attention, shape),
            _panel("FFN", places, _FFN_FLOWS, ffn, shape),
        ],
        "outside": [_drawn(edit, shape, 0, 0) for edit in outside],
        "norm": "" if shape is None else shape.norm.label,
    }


def _panel(
    title: str, places: dict[Port, tuple[int, int]], flows: str, edits: Sequence[Edit], shape: BackboneShape | None
) -> Drawing:
    """A sublayer with its edits; ``x`` and ``y`` of what is in it are middles."""
    names = {port.value for port in places}
    heights = _spread([_middle(edit, places) for edit in edits])
    middle = _EDITS_AT + EDIT_WIDTH // 2
    return {
        "title": title,
        "ports": [{"name": port.value, "meaning": PORT_NAMES[port], "x": x, "y": y} for port, (x, y) in places.items()],
        "flows": [pair for flow in flows.split() if names.issuperset(pair := flow.split("-"))],
        "edits": [_drawn(edit, shape, middle, y) for edit, y in zip(edits, heights, strict=True)],
        "width": _PANEL,
        "height": max([*(y for _, y in places.values()), *heights]) + 40,
    }


def _middle(edit: Edit, places: dict[Port, tuple[int, int]]) -> int:
    """Half way between what an edit reads and what it writes."""
    _, write = places[edit.write]
    _, read = places[edit.read] if edit.read is not None else places[edit.write]
    return (read + write) // 2


def _spread(wanted: Sequence[int]) -> list[int]:
    """Heights of boxes that do not overlap, each as near to what is wanted as the ones above leave it."""
    heights = [0] * len(wanted)
    free = _TOP
    for index in sorted(range(len(wanted)), key=lambda one: wanted[one]):
        heights[index] = max(free, wanted[index])
        free = heights[index] + EDIT_HEIGHT + _GAP
    return heights


def _drawn(edit: Edit, shape: BackboneShape | None, x: int, y: int) -> Drawing:
    """An edit beside the tensors that it reads and writes."""
    sized, gate = edit.sized_form, edit.gate
    reads = "" if edit.read is None else f"reads {PORT_NAMES[edit.read]} and "
    return {
        "form": edit.form.name,
        "label": edit.form.name if sized is None else f"{edit.form.name} {sized.width}",
        "said": f"{edit.form.describe(edit)}: {reads}writes {PORT_NAMES[edit.write]}",
        "gate": gate.name if gate.fixed_scale is None else f"{gate.name} {gate.fixed_scale:g}",
        "read": None if edit.read is None else edit.read.value,
        "write": edit.write.value,
        "insertion": edit.insertion.value,
        "site": edit.site.value,
        "layers": "" if edit.layers.name == "all" else edit.layers.name,
        "formula": "" if shape is None else _formula(edit, shape),
        "x": x,
        "y": y,
    }


def _formula(edit: Edit, shape: BackboneShape) -> str:
    try:
        return edit.formula(shape)
    except InvalidEditError as error:
        return str(error)
