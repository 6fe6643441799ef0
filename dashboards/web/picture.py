"""Positions of a configuration's edits in a block, with the tensors that each reads and writes."""

from collections.abc import Sequence
from typing import Any

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.words.ports import PORT_NAMES, short_name

PORT_HEIGHT = 24
EDIT_WIDTH, EDIT_HEIGHT = 140, 38

_COLUMN_X = 106
_EDITS_X = 256
_PANEL = 410
_GAP = 10
_TOP = 44

# Tensors that an edit may read or write have different heights, so that no arrow crosses another box.
_ATTENTION = {
    Port.RES_IN: (_COLUMN_X, 426),
    Port.X_ATTN: (56, 350),
    Port.CTX: (156, 380),
    Port.Q: (36, 236),
    Port.K: (106, 270),
    Port.V: (176, 304),
    Port.HEAD: (_COLUMN_X, 184),
    Port.CONCAT: (_COLUMN_X, 138),
    Port.O: (_COLUMN_X, 94),
    Port.NORM: (_COLUMN_X, 50),
}
_FFN = {
    Port.RES_F: (_COLUMN_X, 400),
    Port.X_FFN: (_COLUMN_X, 340),
    Port.U: (_COLUMN_X, 262),
    Port.G: (36, 300),
    Port.M: (_COLUMN_X, 205),
    Port.F: (_COLUMN_X, 145),
    Port.SUM: (_COLUMN_X, 95),
    Port.NORM: (_COLUMN_X, 45),
}
_ATTENTION_FLOWS = "res_in-x_attn res_in-ctx x_attn-q ctx-k ctx-v q-head k-head v-head head-concat concat-o o-norm"
_FFN_FLOWS = "res_f-x_ffn x_ffn-u x_ffn-g u-m g-m m-f f-sum sum-norm"
"""Arrows between tensors, as ``from-to``."""


Drawing = dict[str, Any]
"""Drawing as JSON values."""


def picture_of(configuration: Configuration, shape: BackboneShape | None) -> Drawing:
    """Return the drawing of a configuration: two panels, the label of its norms, and edits outside of the blocks.

    Args:
        shape: Shape of the backbone; None if unknown, in which case there are no formulas.
    """
    attention = [edit for edit in configuration.edits if edit.site.is_attention]
    ffn = [edit for edit in configuration.edits if edit.site is Site.FFN and edit.write in _FFN]
    outside = [edit for edit in configuration.edits if edit not in attention and edit not in ffn]
    is_gated = shape.gated_ffn if shape is not None else any(Port.G in (edit.read, edit.write) for edit in ffn)
    places = {port: place for port, place in _FFN.items() if is_gated or port is not Port.G}
    return {
        "panels": [
            _draw_panel("Attention", _ATTENTION, _ATTENTION_FLOWS, attention, shape),
            _draw_panel("FFN", places, _FFN_FLOWS, ffn, shape),
        ],
        "outside": [_draw_edit(edit, shape, 0, 0) for edit in outside],
        "norm": "" if shape is None else shape.norm.label,
    }


def _draw_panel(
    title: str, places: dict[Port, tuple[int, int]], flows: str, edits: Sequence[Edit], shape: BackboneShape | None
) -> Drawing:
    """Return the drawing of a sublayer with its edits; ``x`` and ``y`` are centres."""
    names = {port.value for port in places}
    heights = _spread([_middle(edit, places) for edit in edits])
    middle = _EDITS_X + EDIT_WIDTH // 2
    return {
        "title": title,
        "ports": [_draw_port(port, x, y) for port, (x, y) in places.items()],
        "flows": [pair for flow in flows.split() if names.issuperset(pair := flow.split("-"))],
        "edits": [_draw_edit(edit, shape, middle, y) for edit, y in zip(edits, heights, strict=True)],
        "width": _PANEL,
        "height": max([*(y for _, y in places.values()), *heights]) + 40,
    }


def _draw_port(port: Port, x: int, y: int) -> Drawing:
    """Return the drawing of a tensor, named as in sentences but for the sublayer, which is the title of the panel."""
    label = short_name(port)
    return {"name": port.value, "label": label, "x": x, "y": y, "width": max(62, 14 + 7 * len(label))}


def _middle(edit: Edit, places: dict[Port, tuple[int, int]]) -> int:
    """Return the height half way between the tensors that an edit reads and writes."""
    _, write = places[edit.write]
    _, read = places[edit.read] if edit.read is not None else places[edit.write]
    return (read + write) // 2


def _spread(wanted: Sequence[int]) -> list[int]:
    """Return heights of boxes from top to bottom without overlap, each as near to the wanted height as possible."""
    heights = [0] * len(wanted)
    free = _TOP
    for index in sorted(range(len(wanted)), key=lambda one: wanted[one]):
        heights[index] = max(free, wanted[index])
        free = heights[index] + EDIT_HEIGHT + _GAP
    return heights


def _draw_edit(edit: Edit, shape: BackboneShape | None, x: int, y: int) -> Drawing:
    """Return the drawing of an edit."""
    gate = edit.gate
    reads = "" if edit.read is None else f"reads {PORT_NAMES[edit.read]} and "
    return {
        "form": edit.form.name,
        "label": f"{edit.form.name} {edit.form.size}".strip(),
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
