"""The two ends of an edit: what forms and gates see of the edit they are in, and how wide it is there."""

from dataclasses import dataclass
from typing import Any

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.layers import AllLayers, Layers

WriteReadPairs = tuple[tuple[Port, Port | None], ...]
"""What each of some edits writes, and what it reads."""

PROJECTION_SETS_AT_ATTENTION: tuple[WriteReadPairs, ...] = (
    ((Port.Q, Port.X_ATTN), (Port.V, Port.CTX)),
    ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
    ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX), (Port.O, Port.CONCAT)),
)
PROJECTION_SETS_AT_FFN: tuple[WriteReadPairs, ...] = (
    ((Port.U, Port.X_FFN), (Port.F, Port.M)),
    ((Port.G, Port.X_FFN), (Port.U, Port.X_FFN), (Port.F, Port.M)),
)
"""Projections that are edited together where they lie, each from what it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditEndpoints:
    """What forms and gates, which are parts of it, know of an `Edit`; see there."""

    site: Site
    write: Port
    read: Port | None
    form: Any
    gate: Any
    layers: Layers = AllLayers()  # noqa: RUF009 - frozen

    @property
    def insertion(self) -> Insertion:
        """Sequential when the edit reads what it writes (a constant does, trivially), else parallel."""
        return Insertion.SEQUENTIAL if self.read in (None, self.write) else Insertion.PARALLEL

    @property
    def heads(self) -> Heads:
        """In how many blocks the form works."""
        heads: Heads = self.form.heads
        return heads


def block_widths(edit: EditEndpoints, shape: BackboneShape) -> tuple[int, int]:
    """Widths that one block of an edit's form reads and writes: the head's slice, or the whole port."""
    if edit.read is None:
        return 0, shape.port_width(edit.write)
    if edit.heads is Heads.SINGLE:
        return shape.port_width(edit.read), shape.port_width(edit.write)
    is_sliced = edit.read in (Port.Q, Port.HEAD)
    in_width = shape.head_width if is_sliced else shape.port_width(edit.read)
    return in_width, shape.width if edit.write is Port.O else shape.head_width


def query_heads_per_block(edit: EditEndpoints, shape: BackboneShape) -> int:
    """How many query heads one block of an edit's form serves: those of its group, where it is of a key/value head."""
    return shape.query_heads // shape.key_value_heads if edit.heads is Heads.KEY_VALUE else 1


def is_summed(edit: EditEndpoints) -> bool:
    """Whether what the heads' blocks compute is summed into one tensor: from the heads to o."""
    return edit.write is Port.O and edit.heads is not Heads.SINGLE


def sublayers_of(edit: EditEndpoints, shape: BackboneShape) -> tuple[Sublayer, ...]:
    """The sublayers at which an edit acts, from the input to the output; none outside the blocks."""
    depths = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    chosen = {stack: set(edit.layers.block_indices(depth)) for stack, depth in depths.items()}
    return tuple(sublayer for sublayer in shape.sublayers(edit.site) if sublayer.layer in chosen[sublayer.stack])


def sublayer_count(edit: EditEndpoints, shape: BackboneShape) -> int:
    """How many sublayers an edit acts at, as many as `sublayers_of` gives."""
    return sum(len(edit.layers.block_indices(depth)) for depth in shape.depths(edit.site))
