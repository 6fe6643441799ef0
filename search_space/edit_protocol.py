"""Endpoints of an edit: the part of an edit that forms and gates depend on, and the widths at both ends."""

from dataclasses import dataclass
from typing import Any

from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.layers import AllLayers, Layers

WriteReadPairs = tuple[tuple[Port, Port | None], ...]
"""Ports that several edits write, each with the port that its edit reads."""

PROJECTION_SETS_AT_ATTENTION: tuple[WriteReadPairs, ...] = (
    ((Port.Q, Port.X_ATTN), (Port.V, Port.CTX)),
    ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX)),
    ((Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX), (Port.O, Port.CONCAT)),
)
PROJECTION_SETS_AT_FFN: tuple[WriteReadPairs, ...] = (
    ((Port.U, Port.X_FFN), (Port.F, Port.M)),
    ((Port.G, Port.X_FFN), (Port.U, Port.X_FFN), (Port.F, Port.M)),
)
"""Projections that a search edits together, each from its own input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditEndpoints:
    """Part of an `Edit` that forms and gates depend on; see there."""

    site: Site
    write: Port
    read: Port | None
    form: Any
    gate: Any
    layers: Layers = AllLayers()  # noqa: RUF009 - frozen

    @property
    def insertion(self) -> Insertion:
        """Sequential if the port read is the port written (trivially true of a constant), else parallel."""
        return Insertion.SEQUENTIAL if self.read in (None, self.write) else Insertion.PARALLEL

    @property
    def heads(self) -> Heads:
        """Number of blocks of the form: one, or one per head."""
        heads: Heads = self.form.heads
        return heads


def block_widths(edit: EditEndpoints, shape: BackboneShape) -> tuple[int, int]:
    """Return the widths read and written by one block of the form: a head's slice, or the whole port."""
    if edit.read is None:
        return 0, shape.port_width(edit.write)
    if edit.heads is Heads.SINGLE:
        return shape.port_width(edit.read), shape.port_width(edit.write)
    is_sliced = edit.read in (Port.Q, Port.HEAD)
    in_width = shape.head_width if is_sliced else shape.port_width(edit.read)
    return in_width, shape.width if edit.write is Port.O else shape.head_width


def query_heads_per_block(edit: EditEndpoints, shape: BackboneShape) -> int:
    """Return the number of query heads per block of the form: the group size for key/value heads, else 1."""
    return shape.query_heads // shape.key_value_heads if edit.heads is Heads.KEY_VALUE else 1


def is_summed(edit: EditEndpoints) -> bool:
    """Return whether the outputs of the heads' blocks are summed into one tensor, as at o."""
    return edit.write is Port.O and edit.heads is not Heads.SINGLE


def sublayers_of(edit: EditEndpoints, shape: BackboneShape) -> tuple[Sublayer, ...]:
    """Return the sublayers at which an edit acts, from the input to the output; none outside the blocks."""
    depths = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    chosen = {stack: set(edit.layers.block_indices(depth)) for stack, depth in depths.items()}
    return tuple(sublayer for sublayer in shape.sublayers(edit.site) if sublayer.layer in chosen[sublayer.stack])


def sublayer_count(edit: EditEndpoints, shape: BackboneShape) -> int:
    """Return the number of sublayers at which an edit acts, the length of `sublayers_of`."""
    return sum(len(edit.layers.block_indices(depth)) for depth in shape.depths(edit.site))
