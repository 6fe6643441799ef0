"""Where the edits of a configuration stand in a block: what each reads and writes, as a picture to be drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Port
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPort:
    """A tensor of a sublayer; ``x`` and ``y`` are its middle."""

    name: str
    meaning: str
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnEdit:
    """An edit beside the tensors that it reads and writes; ``x`` and ``y`` are its middle.

    Attributes:
        label: Form and size.
        said: What it is, what it reads and what it writes, in words.
        gate: How it joins what it writes.
        read: The tensor; None for forms that read nothing.
        layers: Which layers; empty for all.
        formula: What it computes; empty where the shape of the backbone is not known.
    """

    form: str
    label: str
    said: str
    gate: str
    read: str | None
    write: str
    insertion: str
    site: str
    layers: str
    formula: str
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A sublayer with its edits.

    Attributes:
        flows: Names of the ports that arrows join.
    """

    title: str
    ports: tuple[DrawnPort, ...]
    flows: tuple[tuple[str, ...], ...]
    edits: tuple[DrawnEdit, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A block with the edits of a configuration.

    Attributes:
        outside: Edits outside the blocks: of the embedded input, of all weights, of the norms of the stack.
    """

    panels: tuple[Panel, ...]
    outside: tuple[DrawnEdit, ...]
    norm: str


def picture_of(configuration: Configuration, shape: BackboneShape | None) -> Picture:
    """The picture of a configuration.

    Args:
        shape: Of the backbone; None where it is not known, then there are no formulas.
    """
    outside_ports = (Port.EMBEDDING, Port.WEIGHTS)
    attention = [edit for edit in configuration.edits if edit.site.is_attention]
    rest = [edit for edit in configuration.edits if not edit.site.is_attention]
    ffn = [edit for edit in rest if edit.write in _FFN and edit.site.value == "ffn"]
    others = [edit for edit in rest if edit not in ffn]
    is_gated = shape.gated_ffn if shape is not None else any(Port.G in (edit.read, edit.write) for edit in ffn)
    places = {port: place for port, place in _FFN.items() if is_gated or port is not Port.G}
    norm = "" if shape is None else shape.norm.words
    return Picture(
        panels=(
            _panel("Attention", _ATTENTION, _ATTENTION_FLOWS, attention, shape),
            _panel("FFN", places, _FFN_FLOWS, ffn, shape),
        ),
        outside=tuple(_drawn(edit, shape, 0, 0) for edit in others if edit.write in (*outside_ports, Port.NORM)),
        norm=norm,
    )


def _panel(
    title: str,
    places: dict[Port, tuple[int, int]],
    flows: str,
    edits: Sequence[Edit],
    shape: BackboneShape | None,
) -> Panel:
    names = {port.value for port in places}
    pairs = [tuple(flow.split("-")) for flow in flows.split()]
    lowest = max(y for _, y in places.values())
    heights = _spread([_middle(edit, places) for edit in edits])
    bottom = max([lowest, *heights]) + 40
    return Panel(
        title=title,
        ports=tuple(DrawnPort(name=port.value, meaning=PORT_NAMES[port], x=x, y=y) for port, (x, y) in places.items()),
        flows=tuple(pair for pair in pairs if names.issuperset(pair)),
        edits=tuple(
            _drawn(edit, shape, _EDITS_AT + EDIT_WIDTH // 2, y) for edit, y in zip(edits, heights, strict=True)
        ),
        width=_PANEL,
        height=bottom,
    )


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


def _drawn(edit: Edit, shape: BackboneShape | None, x: int, y: int) -> DrawnEdit:
    sized = edit.sized_form
    formula = ""
    if shape is not None:
        try:
            formula = edit.formula(shape)
        except InvalidEditError as error:
            formula = str(error)
    return DrawnEdit(
        form=edit.form.name,
        label=edit.form.name if sized is None else f"{edit.form.name} {sized.width}",
        said=_said(edit),
        gate=edit.gate.name if edit.gate.fixed_scale is None else f"{edit.gate.name} {edit.gate.fixed_scale:g}",
        read=None if edit.read is None else edit.read.value,
        write=edit.write.value,
        insertion=edit.insertion.value,
        site=edit.site.value,
        layers="" if edit.layers.name == "all" else edit.layers.name,
        formula=formula,
        x=x,
        y=y,
    )


def _said(edit: Edit) -> str:
    reads = "" if edit.read is None else f"reads {PORT_NAMES[edit.read]} and "
    return f"{edit.form.words(edit)}: {reads}writes {PORT_NAMES[edit.write]}"
