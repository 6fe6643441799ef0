"""Families outside ``families.toml``: shape and ports derived from a model and verified on a small copy of it.

They are stored as JSON under `ENTRY` in the backbone's config.
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
"""Entry of a config beside its own."""

DECLARED: dict[BackboneShape, BackboneFamily] = {}
"""Families declared in this process, by the shape of their backbone."""


def declared_family(config: Mapping[str, object]) -> BackboneFamily | None:
    """Return the family that a config declares; None without one."""
    entry = config.get(ENTRY)
    if not isinstance(entry, Mapping):
        return None
    shape, table = _shape_from_json(entry["shape"]), table_from_json(entry["table"])
    return declare_family(str(config.get("model_type")), shape, table)


def declare_family(name: str, shape: BackboneShape, table: PortTable) -> BackboneFamily:
    """Build a family of one backbone and register it for `declared_family_of`."""
    family = BackboneFamily(
        name=name,
        summary="A table derived from the model.",
        model_types=(name,),
        shape_from=lambda _: shape,
        ports=lambda _: table,
        example={"model_type": name},
    )
    DECLARED[shape] = family
    return family


def declared_family_of(shape: BackboneShape) -> BackboneFamily | None:
    """Return the family of a shape that was declared in this process; None without one."""
    return DECLARED.get(shape)


def declaration_json(shape: BackboneShape, table: PortTable) -> dict[str, Any]:
    """Return the JSON form of a family, which `declared_family` reads."""
    sizes = asdict(shape)
    for name in ("biased_ports", "lacks"):
        sizes[name] = sorted([site.value, port.value] for site, port in getattr(shape, name))
    return {"shape": sizes, "table": table_to_json(table)}


def table_sha256(shape: BackboneShape, table: PortTable) -> str:
    """Return the hash of `declaration_json`; equal for tables with equal ports."""
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
    """Return the JSON form of a table of ports."""
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
    """Build a table of ports from its JSON form."""
    ports = {
        (stack, Site(site), Port(port)): PortLocation(module, side, part, tuple(shares))
        for stack, site, port, module, side, part, shares in entry["ports"]
    }
    modules = {Site(site): path for site, path in entry["attention_modules"].items()}
    stack_norms = tuple(entry["stack_norms"])
    return PortTable(**{**entry, "ports": ports, "attention_modules": modules, "stack_norms": stack_norms})
