"""Validity rules: which combinations mean something. Every refusal names its rule.

Names V1 to V20 are those of the factorised design space in the documentation (README, "Validity rules"); the others
say in a word what they hold. Rules that need no backbone are checked when an edit or a configuration is built, the
others by `check_on`.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from search_space.backbone_shape import BackboneShape
from search_space.dimensions import Heads, NormPlacement, Port, Site
from search_space.errors import InvalidEditError
from search_space.form import Bottleneck, Constant, LowRank, SoftmaxMemory
from search_space.gate import Add, ConvexGate

if TYPE_CHECKING:
    from search_space.edit import Edit

__all__ = ["READS", "RULES", "canonical_read", "check_edit", "check_edits", "check_on", "largest_width"]

RULES: dict[str, str] = {
    "V1": "the convex gate needs attention logits: form softmax_memory, read q, write head",
    "V10": "several heads exist only at write head; write head needs them",
    "V11": "a per-head linear map has at most rank d_h",
    "V14": "a constant needs a module that has a bias",
    "V15": "a rank is at most the smaller of the widths that are read and written",
    "V17": "a reparameterized prefix is a prefix: softmax_memory at the heads, one length",
    "V18": "two convex gates on one attention must share one normaliser",
    "read": "the tensor that is read comes before the one that is written, at the same token positions",
    "site": "the ports belong to the site",
    "gate": "a constant is added as it is",
    "twice": "a form is added at most once from one tensor to another; two are one of summed width",
    "ports": "the backbone has the port",
    "sublayers": "the backbone has such sublayers",
    "norm": "an own LayerNorm belongs to a single block",
    "width": "sizes are whole numbers in range",
    "scale": "a scale is finite and positive",
}

READS: dict[Port, tuple[Port, ...]] = {
    Port.Q: (Port.X_ATTN, Port.Q),
    Port.K: (Port.CTX, Port.K),
    Port.V: (Port.CTX, Port.V),
    Port.HEAD: (Port.Q, Port.X_ATTN, Port.HEAD),
    Port.CONCAT: (Port.X_ATTN, Port.Q, Port.CONCAT),
    Port.O: (Port.X_ATTN, Port.RES_IN, Port.Q, Port.CONCAT, Port.O),
    Port.G: (Port.X_FFN, Port.RES_F, Port.G),
    Port.U: (Port.X_FFN, Port.RES_F, Port.U),
    Port.F: (Port.X_FFN, Port.RES_F, Port.M, Port.F),
    Port.NORM: (),
}
"""What an edit may read for each port it writes: the port itself (sequential) or one upstream (parallel)."""

_ATTENTION_WRITES = (Port.Q, Port.K, Port.V, Port.HEAD, Port.CONCAT, Port.O, Port.NORM)
_FFN_WRITES = (Port.G, Port.U, Port.F, Port.NORM)


def _refuse(rule: str, got: str, advice: str = "") -> InvalidEditError:
    text = f"{RULES[rule]}; got {got}."
    return InvalidEditError(f"{text} {advice}".strip(), rule=rule)


def check_edit(edit: "Edit") -> None:
    """Check the rules that concern one edit and need no backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    _check_ports(edit)
    if isinstance(edit.form, Constant):
        if not isinstance(edit.gate, Add):
            raise _refuse("gate", f"gate {edit.gate.name}")
        return
    _check_heads(edit)
    _check_gate(edit)


def _check_ports(edit: "Edit") -> None:
    writes = (Port.NORM,) if edit.site is Site.STACK else _ATTENTION_WRITES if edit.site.is_attention else _FFN_WRITES
    if edit.write not in writes:
        raise _refuse("site", f"write {edit.write} at {edit.site}", f"Writable there: {', '.join(writes)}.")
    if isinstance(edit.form, Constant):
        if edit.read is not None:
            raise _refuse("read", f"a constant that reads {edit.read}", "Leave read empty.")
        return
    allowed = READS[edit.write]
    if edit.read not in allowed:
        known = ", ".join(allowed) or "nothing (constants only)"
        got = f"read {edit.read or 'nothing'} for write {edit.write}"
        raise _refuse("read", got, f"Readable for it: {known}.")


def _check_heads(edit: "Edit") -> None:
    if (edit.write is Port.HEAD) != (edit.heads is not Heads.SINGLE):
        advice = "Use write concat for one block." if edit.write is Port.HEAD else "Use write head, or one block."
        raise _refuse("V10", f"{edit.heads} at {edit.write}", advice)
    if isinstance(edit.form, Bottleneck) and edit.form.norm and edit.heads is not Heads.SINGLE:
        raise _refuse("norm", f"{edit.heads} with a norm", "Leave the norm out.")


def _check_gate(edit: "Edit") -> None:
    is_prefix = (
        isinstance(edit.form, SoftmaxMemory)
        and edit.write is Port.HEAD
        and edit.read is Port.Q
        and edit.heads is Heads.KEY_VALUE
    )
    if isinstance(edit.gate, ConvexGate) and not is_prefix:
        got = f"{edit.form.name} reading {edit.read}, writing {edit.write} per {edit.heads}"
        raise _refuse("V1", got, "Use add or a scale.")
    if isinstance(edit.form, SoftmaxMemory) and edit.form.reparameterization is not None and not is_prefix:
        raise _refuse("V17", f"{edit.form.name} reading {edit.read}, writing {edit.write}")


def check_edits(edits: "Iterable[Edit]") -> None:
    """Check the rules that concern several edits and need no backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    edits = tuple(edits)
    _check_pairs(edits, [edit.read for edit in edits])


def _check_pairs(edits: "tuple[Edit, ...]", reads: "list[Port | None]") -> None:
    for index, edit in enumerate(edits):
        for other, other_read in zip(edits[:index], reads, strict=False):
            if not _sites_overlap(edit.site, other.site) or edit.write is not other.write:
                continue
            convex = isinstance(edit.gate, ConvexGate), isinstance(other.gate, ConvexGate)
            if all(convex):
                raise _refuse("V18", f"two at {edit.site}", "Use one of the summed length.")
            if reads[index] is other_read and edit.form.name == other.form.name and not any(convex):
                got = f"two {edit.form.name} from {reads[index] or 'nothing'} to {edit.write}"
                raise _refuse("twice", got, "Merge them.")


def _sites_overlap(one: Site, other: Site) -> bool:
    return one is other or (Site.ATTENTION in (one, other) and one.is_attention and other.is_attention)


def canonical_read(read: Port | None, shape: BackboneShape) -> Port | None:
    """The name of a tensor that is read: on post-LN backbones a sublayer's input is the residual stream (V20)."""
    if read is None or shape.norm is NormPlacement.PRE:
        return read
    return {Port.RES_IN: Port.X_ATTN, Port.RES_F: Port.X_FFN}.get(read, read)


def check_on(edits: "Iterable[Edit]", shape: BackboneShape) -> None:
    """Check the rules that depend on the backbone.

    Raises:
        InvalidEditError: If one is broken.
    """
    edits = tuple(edits)
    _check_pairs(edits, [canonical_read(edit.read, shape) for edit in edits])
    for edit in edits:
        site = Site.ATTENTION if edit.site.is_attention else edit.site
        if edit.site is Site.STACK:
            if not shape.stack_norms:
                raise _refuse("V14", f"{shape.family}, whose stack has no biased LayerNorm")
            continue
        sublayers = shape.sublayers(edit.site)
        if not sublayers:
            raise _refuse("sublayers", f"{edit.site} on {shape.family}")
        if Port.G in (edit.write, edit.read) and not shape.gated_ffn:
            raise _refuse("ports", f"g on {shape.family}, whose FFN has no gate projection", "Use u.")
        if isinstance(edit.form, Constant):
            if (site, edit.write) not in shape.biased_ports:
                raise _refuse("V14", f"{site} {edit.write} on {shape.family}", "Choose a port with a bias.")
            continue
        if edit.form.widened >= len(sublayers):
            raise _refuse("width", f"{edit.form.widened} widened sublayers of {len(sublayers)}", "Raise the width.")
        largest = largest_width(edit, shape)
        top = edit.form.width + bool(edit.form.widened)
        if largest is not None and top > largest:
            rule = "V11" if edit.write is Port.HEAD else "V15"
            raise _refuse(rule, f"rank {top} where {largest} is the most", "Lower the rank.")


def largest_width(edit: "Edit", shape: BackboneShape) -> int | None:
    """The largest meaningful width of an edit's form on a backbone; None where nothing bounds it."""
    if not isinstance(edit.form, LowRank) or edit.read is None:
        return None
    written = shape.head_width if edit.write is Port.HEAD else shape.port_width(edit.write)
    per_head = edit.write is Port.HEAD and edit.read in (Port.Q, Port.HEAD)
    read = shape.head_width if per_head else shape.port_width(edit.read)
    return min(read, written)
