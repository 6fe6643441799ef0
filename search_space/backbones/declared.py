"""Families that no table here knows: shape and ports as they were read off a model and proved on a small copy of it.

They travel within the entries of the backbone's config, under `ENTRY`, as JSON.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from search_space.backbones.family import BackboneFamily, PortLocation, PortTable
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, Port, Positions, Site, StackKind

ENTRY = "deltaspace_table"
"""Of a config, beside its own entries."""

_OF_SHAPES: dict[BackboneShape, BackboneFamily] = {}


def declared_family(config: Mapping[str, object]) -> BackboneFamily | None:
    """The family that a config brings with it; None without one."""
    entry = config.get(ENTRY)
    if not isinstance(entry, Mapping):
        return None
    shape, table = _shape_from_json(entry["shape"]), table_from_json(entry["table"])
    return declare_family(str(config.get("model_type")), shape, table)


def declare_family(name: str, shape: BackboneShape, table: PortTable) -> BackboneFamily:
    """A family of one backbone; from now on `declared_family_of` knows it."""
    family = BackboneFamily(
        name=name,
        summary="A table that was made of the model.",
        model_types=(name,),
        shape_from=lambda _: shape,
        ports=lambda _: table,
        example={"model_type": name},
    )
    _OF_SHAPES[shape] = family
    return family


def declared_family_of(shape: BackboneShape) -> BackboneFamily | None:
    """The family of a shape that a config brought with it in this process."""
    return _OF_SHAPES.get(shape)


def declaration_json(shape: BackboneShape, table: PortTable) -> dict[str, Any]:
    """What `declared_family` reads back."""
    sizes = asdict(shape)
    for name in ("biased_ports", "lacks"):
        sizes[name] = sorted([site.value, port.value] for site, port in getattr(shape, name))
    return {"shape": sizes, "table": table_to_json(table)}


def table_sha256(shape: BackboneShape, table: PortTable) -> str:
    """Of what `declaration_json` says: equal where edits would be at the same places."""
    content = declaration_json(shape, table)
    content["table"]["ports"].sort()
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _shape_from_json(sizes: Mapping[str, Any]) -> BackboneShape:
    pairs = {
        name: frozenset((Site(site), Port(port)) for site, port in sizes[name]) for name in ("biased_ports", "lacks")
    }
    enums = {
        "kind": StackKind(sizes["kind"]),
        "norm": NormPlacement(sizes["norm"]),
        "positions": Positions(sizes["positions"]),
    }
    return BackboneShape(**{**sizes, **pairs, **enums})


def table_to_json(table: PortTable) -> dict[str, Any]:
    """A table of ports."""
    ports = [
        [stack, site.value, port.value, place.module, place.side, place.part, list(place.shares)]
        for (stack, site, port), place in table.ports.items()
    ]
    modules = {site.value: path for site, path in table.attention_modules.items()}
    return {
        "layers": dict(table.layers),
        "attention_modules": modules,
        "ports": ports,
        "stack_norms": list(table.stack_norms),
        "embeddings": table.embeddings,
        "positions": table.positions,
        "token_types": table.token_types,
    }


def table_from_json(entry: Mapping[str, Any]) -> PortTable:
    """A table of ports, back from `table_to_json`."""
    ports = {
        (stack, Site(site), Port(port)): PortLocation(module, side, part, tuple(shares))
        for stack, site, port, module, side, part, shares in entry["ports"]
    }
    modules = {Site(site): path for site, path in entry["attention_modules"].items()}
    stack_norms = tuple(entry["stack_norms"])
    return PortTable(**{**entry, "ports": ports, "attention_modules": modules, "stack_norms": stack_norms})
