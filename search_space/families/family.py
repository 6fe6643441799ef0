"""What a backbone family is: how to read its shape from a config, and where its ports are in the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import Port, Site

__all__ = ["Family", "PortLocation", "PortTable"]


@dataclass(frozen=True, slots=True)
class PortLocation:
    """The place of a port: one side of a frozen module.

    Attributes:
        module: Dotted path of the module, relative to its block.
        side: Whether the port is the module's (first) input or its output.
    """

    module: str
    side: Literal["input", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortTable:
    """Where the ports of a family are in its base model (the model without any head).

    The port ``head`` has no location: it exists only inside the attention function. Several ports may share a
    location, such as ``res_in``, ``x_attn`` and ``ctx`` of a post-LN encoder.

    Attributes:
        layers: Stack name to the path of its blocks, with ``{layer}`` for the index.
        attention_modules: Attention site to the module, relative to its block, that calls the attention
            function.
        ports: ``(site, port)`` to the port's location; sites are concrete, never the collective ``attn``.
        stack_norms: Absolute paths of the LayerNorms outside the blocks.
    """

    layers: Mapping[str, str]
    attention_modules: Mapping[Site, str]
    ports: Mapping[tuple[Site, Port], PortLocation]
    stack_norms: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Backbones that share their modules and the entries of their config.

    Attributes:
        name: The family's name, as in ``BackboneShape.family``.
        model_types: Values of ``model_type`` in ``config.json`` that mean this family.
        read_shape: Reads the shape from the entries of a ``config.json``; raises ``UnsupportedBackboneError``
            for an entry that is missing or cannot be.
        ports: Where the ports are; None if configurations can be counted on the family but not yet trained.
    """

    name: str
    model_types: tuple[str, ...]
    read_shape: Callable[[Mapping[str, object]], BackboneShape]
    ports: PortTable | None = field(hash=False)
