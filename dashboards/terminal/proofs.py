"""Result of a backbone check: usable ports, edits and published methods, as a renderable and for JSON."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from dashboards.terminal.checks import grid
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, Site
from search_space.published import METHODS
from trial_runner.port_discovery.proof import Proof

_ATTENTION = (Port.RES_IN, Port.X_ATTN, Port.CTX, Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O, Port.NORM)
_FFN = (Port.RES_F, Port.X_FFN, Port.G, Port.U, Port.M, Port.F, Port.SUM, Port.NORM)
_LISTED = 4


def proof_renderable(proof: Proof) -> RenderableType:
    """Return a backbone check as a renderable."""
    title = Text(f"{proof.model_type} backbone {proof.backbone}", style="bold")
    if proof.problem is not None or proof.shape is None:
        return Group(title, Text(), grid([("cannot be used", f"{proof.problem}.")]))
    return Group(title, Text(), grid(_rows(proof, proof.shape)))


def _rows(proof: Proof, shape: BackboneShape) -> Iterator[tuple[str, str]]:
    found = proof_json(proof)
    made = {"family": "of its family", "model": "made of the model: what passes through its modules, and its config"}
    yield "table", made[proof.table]
    checked = len(proof.kept) + len(proof.broken)
    yield "contract", f"{len(proof.kept)} of {checked} edits keep it on a copy of two blocks ({proof.seconds:.0f} s)"
    layers = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    blocks = " and ".join(f"{count} {name}" for name, count in layers.items() if count)
    of_keys = "" if shape.query_heads == shape.key_value_heads else f" ({shape.key_value_heads} of keys)"
    heads = f"{shape.query_heads} heads{of_keys}"
    yield "shape", f"{blocks} blocks, {shape.norm.label}, {shape.width} wide, {heads}, {shape.parameters:,} parameters"
    for name, ports in found["ports"].items():
        yield name, " ".join(ports) or "nothing"
    for name in ("forms", "insertions", "gates", "methods", "refused"):
        yield name, ", ".join(found[name]) or "none"
    lacked = [f"{site} {port}" for site, port in proof.lacks]
    if lacked:
        yield "not reached", ", ".join(lacked)
    for edit, reason in list(proof.broken.items())[:_LISTED]:
        yield "broken", f"{edit}: {reason}"


def proof_json(proof: Proof) -> dict[str, Any]:
    """Return a backbone check as values for JSON."""
    words = [kept.split() for kept in proof.kept]  # form, gate, variant of the form, ports read and written
    ends = [rest for _, _, _, *rest in words]
    return {
        "backbone": proof.backbone,
        "model_type": proof.model_type,
        "table": proof.table,
        "usable": proof.problem is None and proof.shape is not None,
        "problem": proof.problem,
        "kept": len(proof.kept),
        "broken": dict(proof.broken),
        "forms": sorted({form for form, *_ in words}),
        "insertions": sorted({"sequential" if one[0] == one[2] else "parallel" for one in ends if len(one) == 3}),
        "gates": sorted({gate for _, gate, *_ in words}),
        "lacks": [list(pair) for pair in proof.lacks],
        **_possible(proof.shape),
        "seconds": proof.seconds,
    }


def _possible(shape: BackboneShape | None) -> dict[str, Any]:
    """Return the ports of both sides, and the published methods by whether they are valid."""
    if shape is None:
        return {"ports": {}, "methods": [], "refused": [], "parameters": None}
    sides = {"attention": (Site.ATTENTION, _ATTENTION), "ffn": (Site.FFN, _FFN)}
    ports = {
        name: [str(port) for port in some if shape.has(site, port) and (port is not Port.G or shape.gated_ffn)]
        for name, (site, some) in sides.items()
    }
    valid = [method.name for method in METHODS.values() if method.invalid_reason(shape) is None]
    refused = [name for name in METHODS if name not in valid]
    return {"ports": ports, "methods": valid, "refused": refused, "parameters": shape.parameters}
