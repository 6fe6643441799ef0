"""What is possible on a backbone, for the terminal."""

from collections.abc import Iterator

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
    """All of a proof, as wide as the terminal."""
    title = Text(f"{proof.model_type} backbone {proof.backbone}", style="bold")
    if proof.problem is not None or proof.shape is None:
        return Group(title, Text(), grid([("cannot be used", f"{proof.problem}.")]))
    return Group(title, Text(), grid(_rows(proof, proof.shape)))


def _rows(proof: Proof, shape: BackboneShape) -> Iterator[tuple[str, str]]:
    made = {"family": "of its family", "model": "made of the model: what passes through its modules, and its config"}
    yield "table", made[proof.table]
    checked = len(proof.kept) + len(proof.broken)
    yield "contract", f"{len(proof.kept)} of {checked} edits keep it on a copy of two blocks ({proof.seconds:.0f} s)"
    layers = {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers}
    blocks = " and ".join(f"{count} {name}" for name, count in layers.items() if count)
    of_keys = "" if shape.query_heads == shape.key_value_heads else f" ({shape.key_value_heads} of keys)"
    heads = f"{shape.query_heads} heads{of_keys}"
    yield "shape", f"{blocks} blocks, {shape.norm.words}, {shape.width} wide, {heads}, {shape.parameters:,} parameters"
    for name, ports in _ports(shape).items():
        yield name, " ".join(ports) or "nothing"
    for name, words in _kept_words(proof).items():
        yield name, ", ".join(words)
    for name, methods in _methods(shape).items():
        yield name, ", ".join(methods) or "none"
    lacked = [f"{site} {port}" for site, port in proof.lacks]
    if lacked:
        yield "not reached", ", ".join(lacked)
    for edit, promise in list(proof.broken.items())[:_LISTED]:
        yield "broken", f"{edit}: {promise}"


def _kept_words(proof: Proof) -> dict[str, list[str]]:
    """Forms, insertions and gates of the edits that keep the contract."""
    forms, insertions, gates = set(), set(), set()
    for words in proof.kept:
        form, gate, _, *ends = words.split()
        forms.add(form)
        gates.add(gate)
        if len(ends) == 3:
            insertions.add("sequential" if ends[0] == ends[2] else "parallel")
    return {"forms": sorted(forms), "insertions": sorted(insertions), "gates": sorted(gates)}


def _ports(shape: BackboneShape) -> dict[str, list[str]]:
    """Ports of either side."""
    sides = {"attention": (Site.ATTENTION, _ATTENTION), "ffn": (Site.FFN, _FFN)}
    return {
        name: [str(port) for port in some if shape.has(site, port) and (port is not Port.G or shape.gated_ffn)]
        for name, (site, some) in sides.items()
    }


def _methods(shape: BackboneShape) -> dict[str, list[str]]:
    """Published methods that are valid, and that are not."""
    valid = [method.name for method in METHODS.values() if method.validity(shape) is None]
    return {"methods": valid, "refused": [name for name in METHODS if name not in valid]}


def proof_json(proof: Proof) -> dict[str, object]:
    """All of a proof, for programs."""
    shape = proof.shape
    possible = {"methods": [], "refused": []} if shape is None else _methods(shape)
    return {
        "backbone": proof.backbone,
        "model_type": proof.model_type,
        "table": proof.table,
        "usable": proof.problem is None and shape is not None,
        "problem": proof.problem,
        "kept": len(proof.kept),
        "broken": dict(proof.broken),
        **_kept_words(proof),
        "lacks": [list(pair) for pair in proof.lacks],
        "ports": {} if shape is None else _ports(shape),
        **possible,
        "parameters": None if shape is None else shape.parameters,
        "seconds": proof.seconds,
    }
