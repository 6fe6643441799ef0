"""Edits that several published methods consist of, from hyper-parameter values."""

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.forms import Bottleneck, Form, Init, LowRank, OwnNorm, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale, Gate
from search_space.published.method import Values


def at_attention(write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    """An edit at every attention, added unless another gate is given."""
    return Edit(site=Site.ATTENTION, write=write, read=read, form=form, gate=gate or Add())


def at_ffn(write: Port, read: Port | None, form: Form, gate: Gate | None = None) -> Edit:
    """An edit at every FFN, added unless another gate is given."""
    return Edit(site=Site.FFN, write=write, read=read, form=form, gate=gate or Add())


def scaled(values: Values) -> Gate:
    """The fixed scale of the method."""
    return FixedScale(value=float(values["scale"]))


def middle_of(values: Values) -> int | None:
    """Hidden width of the reparameterization; None without."""
    middle = values.get("reparameterization_width")
    return None if middle is None else int(middle)


def prefix(values: Values, gate: Gate | None = None, *, robust: bool = False) -> Edit:
    """A prefix at every attention, gated as in the softmax unless another gate is given."""
    form = SoftmaxMemory(
        width=int(values["prefix_length"]),
        heads=Heads.KEY_VALUE,
        reparameterization=middle_of(values),
        robust=robust,
    )
    return at_attention(Port.HEAD, Port.Q, form, gate or ConvexGate())


def adapter(values: Values, *, size: str = "bottleneck", normed: bool = True) -> Bottleneck:
    """A bottleneck adapter with biases.

    Args:
        values: Those of the method.
        size: Name of the hyper-parameter that holds its width.
        normed: Whether the setting ``norm`` concerns it.
    """
    return Bottleneck(
        width=int(values[size]),
        activation=Activation(str(values.get("activation", Activation.RELU))),
        norm=OwnNorm(str(values["norm"])) if normed else OwnNorm.NONE,
        init=Init(str(values["init"])),
    )


def sequential_at_attention(values: Values) -> Edit:
    """An adapter after the output projection of attention."""
    return at_attention(Port.O, Port.O, adapter(values))


def sequential_at_ffn(values: Values, *, normed: bool = True) -> Edit:
    """An adapter after the FFN."""
    return at_ffn(Port.F, Port.F, adapter(values, normed=normed))


def parallel_at_attention(values: Values, *, write: Port, size: str = "bottleneck", read: str = "read") -> Edit:
    """An adapter beside attention."""
    return at_attention(write, Port(str(values[read])), adapter(values, size=size))


def parallel_at_ffn(values: Values, gate: Gate | None = None, *, size: str = "bottleneck", normed: bool = True) -> Edit:
    """An adapter beside the FFN."""
    return at_ffn(Port.F, Port(str(values["read"])), adapter(values, size=size, normed=normed), gate)


def lora(write: Port, read: Port, values: Values) -> Edit:
    """LoRA of one projection."""
    form = LowRank(width=int(values["rank"]), bias=values.get("bias", "no") == "yes")
    make = at_ffn if write in (Port.G, Port.U, Port.F) else at_attention
    return make(write, read, form, scaled(values))


def at_query_and_value(form: Form, gate: Gate | None = None) -> tuple[Edit, ...]:
    """One form beside the projections of queries and of values."""
    return at_attention(Port.Q, Port.X_ATTN, form, gate), at_attention(Port.V, Port.CTX, form, gate)


def lora_on_ffn(shape: BackboneShape, values: Values) -> tuple[Edit, ...]:
    """LoRA of every projection of the FFN; a gated FFN has two up."""
    up = (Port.G, Port.U) if shape.gated_ffn else (Port.U,)
    return (*(lora(write, Port.X_FFN, values) for write in up), lora(Port.F, Port.M, values))
