"""Backbone families: the shape from a config, and the ports in the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from search_space.backbones.entries import ConfigEntries
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site


@dataclass(frozen=True, slots=True)
class PortLocation:
    """Location of a port: one side of a frozen module, or a slice of it.

    Attributes:
        module: Dotted path of the module, relative to its block; empty for the block itself.
        side: Whether the port is the module's (first) input or its output. If a module returns a tuple, its output is
            the first entry.
        part: Index of the slice, from 0.
        shares: Relative widths of the slices of the tensor's last axis. ``(1, 1, 1)`` if one module computes queries,
            keys and values; ``(4, 1, 1)`` if queries have four times the heads.
    """

    module: str
    side: Literal["input", "output"]
    part: int = 0
    shares: tuple[int, ...] = (1,)

    def sizes(self, width: int) -> list[int]:
        """Return the widths of all slices of an axis."""
        return [width * share // sum(self.shares) for share in self.shares]

    def whole(self, width: int) -> int:
        """Return the width of the axis for a width of this slice."""
        return width * sum(self.shares) // self.shares[self.part]

    def columns(self, width: int) -> slice:
        """Return the slice of an axis."""
        sizes = self.sizes(width)
        start = sum(sizes[: self.part])
        return slice(start, start + sizes[self.part])


@dataclass(frozen=True, slots=True, kw_only=True)
class PortTable:
    """Locations of a backbone's ports in its base model (the model without any head).

    The port ``head`` has no location: it exists only inside the attention function. Several ports may share a
    location, such as ``res_in``, ``x_attn`` and ``ctx`` of a post-LN encoder. Stacks are ``"encoder"`` and
    ``"decoder"``.

    Attributes:
        layers: Stack to the path of its blocks, with ``{layer}`` for the index.
        attention_modules: Attention site to the module, relative to its block, that calls the attention function.
        ports: ``(stack, site, port)`` to the port's location; sites are concrete, never the collective ``attn``.
        stack_norms: Absolute paths of the LayerNorms with a bias outside the blocks.
        embeddings: Absolute path of the token embedding (of the encoder, if there is one).
        positions: Absolute path of the module that adds positions to the input of encoders; prompts get none. None in
            decoders, in which prompts have positions as any token, and without such a module.
        token_types: Absolute path of the embedding of token types; prompts get none. None without one.
        relative_positions: Absolute path of the norm whose output is the table of relative positions (DeBERTa). The
            query and key projections of every block read it beside the contents. None without such a table.
        is_transposed: Whether linear layers store ``(D_in, D_out)``, as those of GPT-2.
    """

    layers: Mapping[str, str]
    attention_modules: Mapping[Site, str]
    ports: Mapping[tuple[str, Site, Port], PortLocation]
    stack_norms: tuple[str, ...]
    embeddings: str
    positions: str | None = None
    token_types: str | None = None
    relative_positions: str | None = None
    is_transposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneFamily:
    """Backbones that share their modules and the entries of their config.

    Attributes:
        name: Name of the family, as in ``BackboneShape.family``.
        summary: Description in one sentence.
        model_types: Values of ``model_type`` in ``config.json``.
        shape_from: Function from the entries of a ``config.json`` to the shape.
        ports: Function from a shape to the locations of the ports.
        example: Config of a small backbone with distinct sizes, for the contract suites.
    """

    name: str
    summary: str
    model_types: tuple[str, ...]
    shape_from: Callable[[ConfigEntries], BackboneShape]
    ports: Callable[[BackboneShape], PortTable]
    example: Mapping[str, object]

    def read_shape(self, config: Mapping[str, object]) -> BackboneShape:
        """Return the shape of a backbone, from the entries of its ``config.json``.

        Raises:
            UnsupportedBackboneError: If an entry is missing or invalid.
        """
        return self.shape_from(ConfigEntries(self.name, config))
