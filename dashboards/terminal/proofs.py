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
    stacks = [f"{shape.encoder_layers} encoder" if shape.encoder_layers else ""]
    stacks.append(f"{shape.decoder_layers} decoder" if shape.decoder_layers else "")
    heads = f"{shape.query_heads} heads" + (
        "" if shape.query_heads == shape.key_value_heads else f" ({shape.key_value_heads} of keys)"
    )
    blocks = " and ".join(filter(None, stacks))
    yield "shape", f"{blocks} blocks, {shape.norm.words}, {shape.width} wide, {heads}, {shape.parameters:,} parameters"
    for name, ports in (("attention", possible(shape)["attention"]), ("ffn", possible(shape)["ffn"])):
        yield name, " ".join(ports) or "nothing"
    possible_here = possible(shape)
    for name in ("forms", "insertions", "gates"):
        yield name, ", ".join(sorted({word for word in _words(proof, name)}))
    for name in ("methods", "refused"):
        yield name, ", ".join(possible_here[name]) or "none"
    lacked = [f"{site} {port}" for site, port in proof.lacks]
    if lacked:
        yield "not reached", ", ".join(lacked)
    for edit, promise in list(proof.broken.items())[:_LISTED]:
        yield "broken", f"{edit}: {promise}"


def _words(proof: Proof, what: str) -> Iterator[str]:
    for words in proof.kept:
        form, gate, _, *ends = words.split()
        if what == "insertions" and len(ends) == 3:
            yield "sequential" if ends[0] == ends[2] else "parallel"
        elif what != "insertions":
            yield form if what == "forms" else gate


def possible(shape: BackboneShape) -> dict[str, list[str]]:
    """Ports of either side, and published methods that are valid and that are not."""
    ports = {"attention": (Site.ATTENTION, _ATTENTION), "ffn": (Site.FFN, _FFN)}
    found = {
        name: [str(port) for port in some if shape.has(site, port) and (port is not Port.G or shape.gated_ffn)]
        for name, (site, some) in ports.items()
    }
    valid = [method.name for method in METHODS.values() if method.validity(shape) is None]
    return {**found, "methods": valid, "refused": [name for name in METHODS if name not in valid]}


def proof_json(proof: Proof) -> dict[str, object]:
    """All of a proof, for programs."""
    usable = proof.problem is None and proof.shape is not None
    return {
        "backbone": proof.backbone,
        "model_type": proof.model_type,
        "table": proof.table,
        "usable": usable,
        "problem": proof.problem,
        "kept": len(proof.kept),
        "broken": dict(proof.broken),
        "forms": sorted(set(_words(proof, "forms"))),
        "insertions": sorted(set(_words(proof, "insertions"))),
        "gates": sorted(set(_words(proof, "gates"))),
        "lacks": [list(pair) for pair in proof.lacks],
        "ports": {} if proof.shape is None else {key: possible(proof.shape)[key] for key in ("attention", "ffn")},
        "methods": [] if proof.shape is None else possible(proof.shape)["methods"],
        "refused": [] if proof.shape is None else possible(proof.shape)["refused"],
        "parameters": None if proof.shape is None else proof.shape.parameters,
        "seconds": proof.seconds,
    }
