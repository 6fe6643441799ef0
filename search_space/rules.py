"""Validity rules as data: the meaningful combinations of dimensions. Every error names its rule.

V1 to V20 are the names in the documentation's factorised design space; other names are one word for their content.
Rules of one edit are checked when it is built, rules between edits when a configuration is built. The others depend
on a backbone.
"""

from typing import TypeGuard

from search_space.dimensions import Port, Site
from search_space.errors import InvalidEditError

RULES: dict[str, str] = {
    "V1": "a gate of log-sum-exps needs attention logits: a softmax memory or an inducer that reads q at the heads",
    "V10": "several heads exist only at write head, or from q or head to o; write head needs them",
    "V11": "a per-head linear map has at most rank d_h",
    "V14": "a constant needs a module that has a bias",
    "V15": "a rank is at most the smaller of the widths that are read and written, of vera their sum; phm's n "
    "divides them and the bottleneck; a diagonal reads and writes one width",
    "V17": "a reparameterized table belongs to the heads, reads q, and has one length and no bias or norm",
    "V18": "two gates of log-sum-exps on one attention must share one normaliser",
    "V19": "prompts belong to the embedded input and forms of the whole model to its weights, at most one each",
    "read": "the tensor that is read comes before the one that is written, at the same token positions",
    "site": "the ports belong to the site",
    "gate": "a constant is added as it is",
    "mul": "the gate mul belongs to a diagonal that reads what it writes, and only there",
    "dead": "a gate that starts closed needs a form that does not start at zero",
    "per": "a scale per head belongs to the heads",
    "twice": "a form is added at most once from one tensor to another; two are one of summed width (V16)",
    "ports": "the backbone has the port",
    "sublayers": "the backbone has such sublayers",
    "layers": "the layers that are chosen exist in the backbone",
    "norm": "an own LayerNorm belongs to a single block",
    "width": "sizes are whole numbers in range",
    "scale": "a scale is finite and positive",
    "sample": "a gate of a sample's mean sees all of its tokens, so it belongs to encoders, and not to "
    "those whose projections read rows of relative positions, too",
    "decomposed": "a matrix decomposed into magnitude and direction is that of the projection from the tensor that is "
    "read to the one that is written, under a gate that adds, scaled or not",
}

READABLE_PORTS: dict[Port, tuple[Port, ...]] = {
    Port.Q: (Port.X_ATTN, Port.Q),
    Port.K: (Port.CTX, Port.K),
    Port.V: (Port.CTX, Port.V),
    Port.HEAD: (Port.Q, Port.X_ATTN, Port.HEAD),
    Port.CONCAT: (Port.X_ATTN, Port.Q, Port.CONCAT),
    Port.O: (Port.X_ATTN, Port.RES_IN, Port.Q, Port.HEAD, Port.CONCAT, Port.O),
    Port.G: (Port.X_FFN, Port.RES_F, Port.G),
    Port.U: (Port.X_FFN, Port.RES_F, Port.U),
    Port.M: (Port.X_FFN, Port.RES_F, Port.M),
    Port.F: (Port.X_FFN, Port.RES_F, Port.M, Port.F),
    Port.SUM: (Port.SUM,),
    Port.NORM: (),
    Port.EMBEDDING: (),
    Port.WEIGHTS: (),
}
"""Ports that an edit may read for each port it writes: the port itself (sequential) or one upstream (parallel)."""

PROJECTION_INPUTS: dict[Port, Port] = {
    Port.Q: Port.X_ATTN,
    Port.K: Port.CTX,
    Port.V: Port.CTX,
    Port.O: Port.CONCAT,
    Port.G: Port.X_FFN,
    Port.U: Port.X_FFN,
    Port.F: Port.M,
}
"""Port that a linear layer writes, to the port that it reads."""

_ATTENTION_WRITES = (Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O, Port.NORM)
_WRITES: dict[Site, tuple[Port, ...]] = {
    Site.FFN: (Port.G, Port.U, Port.M, Port.F, Port.SUM, Port.NORM),
    Site.STACK: (Port.NORM,),
    Site.EMBEDDING: (Port.EMBEDDING,),
    Site.GLOBAL: (Port.WEIGHTS,),
}


def writable_ports(site: Site) -> tuple[Port, ...]:
    """Return the tensors that an edit may write at a site."""
    return _WRITES.get(site, _ATTENTION_WRITES)


def rule_error(rule: str, got: str, advice: str = "") -> InvalidEditError:
    """Build the error of a broken rule: the rule, the offending value, and advice."""
    text = f"{RULES[rule]}; got {got}."
    return InvalidEditError(f"{text} {advice}".strip(), rule=rule)


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_positive_integer(value: object, name: str, advice: str = "") -> None:
    """Check that a size is an integer of at least 1.

    Raises:
        InvalidEditError: If it is not.
    """
    if not is_integer(value) or not value >= 1:
        raise InvalidEditError(f"{name} must be a whole number of at least 1; got {value!r}.{advice}", rule="width")
