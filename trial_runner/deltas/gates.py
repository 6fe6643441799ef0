"""What gates do to a contribution and train: one class for each, by name in `GATE_DELTAS`.

What branches on a gate elsewhere asks its class here. The trained numbers are parts of the edit's module.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, ScalePer
from search_space.edit import Edit
from search_space.gates import (
    Add,
    ConvexGate,
    ConvexInducerGate,
    ConvexSampleGate,
    FixedScale,
    Gate,
    InducerGate,
    LearnedScale,
    Multiply,
    Prepend,
    SampleGate,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from trial_runner.deltas.blocks import Blocks, block_product, blocks_of, remainder_normal
from trial_runner.deltas.form_delta import FormDelta

Part = tuple[str, Tensor | nn.Module]


class Gated(nn.Module):
    """The module of an edit at one sublayer, as its gate sees it: the form, and the gate's own numbers.

    Attributes:
        scale: The trained scale, ones at the start; None without one.
        factor: The trained gate of a number per sublayer or token; None without one.
        keys: MLP_k of an inducer; None without one.
        fixed_scale: The scale of a gate that has a fixed one, ``()``; None without one.
    """

    fixed_scale: Tensor | None
    scale: nn.Parameter | None
    factor: nn.Module | None
    keys: nn.Module | None

    def __init__(self, edit: Edit, form: FormDelta) -> None:
        """Keep the form; the gate has no numbers yet."""
        super().__init__()
        self.edit = edit
        self.form = form
        self.scale = self.factor = self.keys = None
        self.register_buffer("fixed_scale", None, persistent=False)

    def key_offset(self, q: Tensor) -> Tensor | None:
        """``MLP_k(q)`` of an inducer, ``(B, T, H, d_h)`` to the same; None where the key is the query itself.

        Args:
            q: Queries before their rotation and scaling.
        """
        if self.keys is None:
            return None
        offset: Tensor = self.keys(q)
        return offset

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N, R, d_h)`` of a prefix."""
        return self.form.table()


class GateDelta:
    """How a contribution joins the port that it is written to: added.

    Attributes:
        is_prefix: Whether its rows stand before the keys, which does all that it is.
        is_of_sample: Whether it has a number for each sample; its ``weight`` is given which tokens are real.
        beside: What is read for the gate alone; None for nothing.
    """

    is_prefix: ClassVar[bool] = False
    is_of_sample: ClassVar[bool] = False
    beside: ClassVar[Port | None] = None

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """What is trained or fixed, by its name in the edit's module; initial values are drawn on the CPU."""
        yield from ()

    @staticmethod
    def weight(delta: Gated, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """Factor of each token and head, ``(B, T, [H,] 1)``, of what is read and the weight that the logits give."""
        return weight

    @staticmethod
    def scaled(delta: Gated, out: Tensor) -> Tensor:
        """The contribution times what is the same for all tokens."""
        return out

    @staticmethod
    def factor(delta: Gated) -> Tensor:
        """What a linear one multiplies with: a number ``()`` or one per channel ``(D_out,)``, in float64."""
        return torch.tensor(1.0, dtype=torch.float64)

    @staticmethod
    def fixed_factor(gate: Gate) -> float:
        """The part of it that is not trained."""
        return 1.0

    @staticmethod
    def own_logits(delta: Gated, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Log-sum-exp of the logits of the edit's own keys; see `PortDelta.own_logits`.

        An inducer has one key per query, ``q + MLP_k(q)``, whose MLP takes q before its rotation (Chen et al. 2022).
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        offset = delta.key_offset(projected)
        keys = query if offset is None else query + offset.to(query.dtype)
        return (query.to(wide) * keys.to(wide)).sum(dim=-1) * scaling


class PlainDelta(GateDelta):
    """``h + Delta``, or ``h * l``."""


class FixedScaleDelta(GateDelta):
    """``h + s Delta``, s a constant."""

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        yield "fixed_scale", torch.tensor(FixedScaleDelta.fixed_factor(edit.gate), dtype=torch.float64)

    @staticmethod
    def scaled(delta: Gated, out: Tensor) -> Tensor:
        """See `GateDelta`."""
        return out if delta.fixed_scale is None else out * delta.fixed_scale

    @staticmethod
    def factor(delta: Gated) -> Tensor:
        """See `GateDelta`."""
        return torch.tensor(FixedScaleDelta.fixed_factor(delta.edit.gate), dtype=torch.float64)

    @staticmethod
    def fixed_factor(gate: Gate) -> float:
        """See `GateDelta`."""
        return gate.value if isinstance(gate, FixedScale) else 1.0


class LearnedScaleDelta(GateDelta):
    """``h + s Delta``, s trained from ones: ``()``, ``(D_out,)`` or ``(H, 1)``, at the heads ``(H, d_h)``."""

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        per = edit.gate.per if isinstance(edit.gate, LearnedScale) else ScalePer.SUBLAYER
        yield "scale", nn.Parameter(torch.ones(_size_of_scale(per, edit.write, shape), dtype=torch.float64))

    @staticmethod
    def scaled(delta: Gated, out: Tensor) -> Tensor:
        """See `GateDelta`."""
        return out if delta.scale is None else out * delta.scale.to(out.dtype)

    @staticmethod
    def factor(delta: Gated) -> Tensor:
        """See `GateDelta`."""
        return GateDelta.factor(delta) if delta.scale is None else delta.scale.detach().double()


def _size_of_scale(per: ScalePer, write: Port, shape: BackboneShape) -> tuple[int, ...]:
    match per:
        case ScalePer.SUBLAYER:
            return ()
        case ScalePer.HEAD:
            return (shape.query_heads, 1)
        case ScalePer.CHANNEL if write is Port.HEAD:
            return (shape.query_heads, shape.head_width)
        case ScalePer.CHANNEL:
            return (shape.port_width(write),)


class TanhDelta(GateDelta):
    """``h + tanh(g) Delta``."""

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        yield "factor", TanhFactor()

    @staticmethod
    def scaled(delta: Gated, out: Tensor) -> Tensor:
        """See `GateDelta`."""
        return out if delta.factor is None else out * delta.factor().to(out.dtype)


class SigmoidDelta(GateDelta):
    """``h + sigmoid(z w + b) Delta``."""

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        yield "factor", SigmoidFactor(blocks_of(edit, shape))

    @staticmethod
    def weight(delta: Gated, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """See `GateDelta`."""
        return weight if delta.factor is None else delta.factor(z)


class ConvexDelta(GateDelta):
    """``(1 - lambda) h + lambda Delta`` of a table, whose rows stand before the keys."""

    is_prefix = True


class SampleDelta(GateDelta):
    """``h + g Delta`` with the mean g of a sigmoid over a sample's tokens."""

    is_of_sample = True

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        yield "factor", SigmoidFactor(blocks_of(edit, shape))

    @staticmethod
    def weight(delta: Gated, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """``(B, 1, [H,] 1)``.

        Args:
            delta: The module of the edit.
            z: What is read.
            weight: Which tokens are real, ``(B, T, 1)``; None for all.
        """
        return weight if delta.factor is None or z is None else sample_mean(delta.factor(z), weight)


class ConvexSampleDelta(ConvexDelta):
    """A prefix whose keys and values are multiplied with such a mean of what attention reads."""

    is_of_sample = True
    beside = Port.X_ATTN

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        width = shape.port_width(Port.X_ATTN)
        yield "factor", SigmoidFactor(Blocks(number=1, of_heads=False, query_heads=1, in_width=width, out_width=1))

    weight = staticmethod(SampleDelta.weight)


def sample_mean(each: Tensor, real: Tensor | None) -> Tensor:
    """The mean over the tokens of a sample, ``(B, T, ...)`` to ``(B, 1, ...)``.

    Args:
        each: A number for each token, and perhaps for each head.
        real: Which tokens count, ``(B, T, 1)``; None for all.
    """
    if real is None:
        return each.mean(dim=1, keepdim=True)
    counted = real.to(each.dtype).reshape(*real.shape[:2], *(1,) * (each.dim() - 2))
    return (each * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True).clamp_min(1)


class WeightedDelta(GateDelta):
    """``h + lambda Delta`` of a table."""

    @staticmethod
    def own_logits(delta: Gated, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Over the rows of the table."""
        wide = torch.promote_types(query.dtype, torch.float32)
        keys = delta.table()[0].to(query.dtype)  # (N, R, d_h)
        keys = keys.repeat_interleave(query.shape[-2] // keys.shape[0], dim=0)
        logits = torch.einsum("bthd,hrd->bthr", query, keys).to(wide) * scaling
        is_real = getattr(delta.form, "is_real", None)
        if is_real is not None:
            logits = logits.masked_fill(~is_real, -torch.inf)
        return torch.logsumexp(logits, dim=-1)


class InducerDelta(GateDelta):
    """``h + lambda Delta`` of an inducer, or ``(1 - lambda) h + lambda Delta``."""

    @staticmethod
    def parts(edit: Edit, shape: BackboneShape, generator: torch.Generator) -> Iterator[Part]:
        """See `GateDelta`."""
        match edit.gate:
            case InducerGate(key_width=int(hidden)) | ConvexInducerGate(key_width=int(hidden)):
                yield "keys", InducerKeys(shape, hidden, generator)


GATE_DELTAS: Mapping[str, type[GateDelta]] = {
    Add.name: PlainDelta,
    FixedScale.name: FixedScaleDelta,
    LearnedScale.name: LearnedScaleDelta,
    TanhGate.name: TanhDelta,
    SigmoidGate.name: SigmoidDelta,
    ConvexGate.name: ConvexDelta,
    WeightedGate.name: WeightedDelta,
    InducerGate.name: InducerDelta,
    ConvexInducerGate.name: InducerDelta,
    Multiply.name: PlainDelta,
    Prepend.name: GateDelta,
    SampleGate.name: SampleDelta,
    ConvexSampleGate.name: ConvexSampleDelta,
}
"""Every gate by its name; rows that come before others have nothing to join."""


def gate_of(edit: Edit) -> type[GateDelta]:
    """What the gate of an edit does."""
    return GATE_DELTAS[edit.gate.name]


class TanhFactor(nn.Module):
    """``tanh(g)`` with g = 0 at the start."""

    def __init__(self) -> None:
        """Start closed."""
        super().__init__()
        self.g = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self) -> Tensor:
        """One number."""
        return torch.tanh(self.g)


class SigmoidFactor(nn.Module):
    """``sigmoid(z w + b)`` per token, and per head where the form has several; w and b start at zero."""

    def __init__(self, blocks: Blocks) -> None:
        """Start half open."""
        super().__init__()
        self.blocks = blocks
        self.weight = nn.Parameter(torch.zeros(blocks.shape(blocks.in_width, 1), dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(blocks.bias_shape(1), dtype=torch.float64))

    def forward(self, z: Tensor) -> Tensor:
        """``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] 1)``."""
        logits = block_product(z, self.weight, self.blocks)
        return torch.sigmoid(logits + self.blocks.spread(self.bias).to(logits.dtype))


class InducerKeys(nn.Module):
    """``MLP_k(q) = tanh(q A + a) B + b`` per query head, how a virtual key differs from its query (Chen et al. 2022).

    All numbers start as remainders of N(0, 1) by 2, times 0.01.
    """

    def __init__(self, shape: BackboneShape, hidden: int, generator: torch.Generator) -> None:
        """Draw the weights and biases."""
        super().__init__()
        heads, width = shape.query_heads, shape.head_width
        self.blocks = Blocks(number=heads, of_heads=True, query_heads=heads, in_width=width, out_width=width)
        self.down = nn.Parameter(remainder_normal((heads, width, hidden), generator))
        self.down_bias = nn.Parameter(remainder_normal((heads, hidden), generator))
        self.up = nn.Parameter(remainder_normal((heads, hidden, width), generator))
        self.up_bias = nn.Parameter(remainder_normal((heads, width), generator))

    def forward(self, q: Tensor) -> Tensor:
        """``(B, T, H, d_h)``, before its rotation and scaling, to ``(B, T, H, d_h)``."""
        hidden = block_product(q, self.down, self.blocks)  # (B, T, H, R)
        out = block_product(torch.tanh(hidden + self.down_bias.to(hidden.dtype)), self.up, self.blocks)
        return out + self.up_bias.to(out.dtype)
