"""Gates with their parameters: one class of `PortDelta` for each, by name in `GATE_DELTAS`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from search_space import gates
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, ScalePer
from trial_runner.deltas.blocks import Blocks, block_product, blocks_of, remainder_normal
from trial_runner.deltas.port_delta import PortDelta


class FixedScaleDelta(PortDelta):
    """``h + s Delta``, s a constant."""

    fixed_scale: Tensor

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Register the constant."""
        self.register_buffer("fixed_scale", self.linear_factor(), persistent=False)

    def scaled(self, out: Tensor) -> Tensor:
        """Multiply with s."""
        return out * self.fixed_scale

    def common_factor(self) -> Tensor:
        """Return s."""
        return self.fixed_scale

    def linear_factor(self) -> Tensor:
        """Return s in float64."""
        return torch.tensor(self.edit.gate.fixed_scale, dtype=torch.float64)


class LearnedScaleDelta(PortDelta):
    """``h + s Delta``, s trained from ones: ``()``, ``(D_out,)`` or ``(H, 1)``, at the heads ``(H, d_h)``."""

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Add s, which starts at 1."""
        per = self.edit.gate.per if isinstance(self.edit.gate, gates.LearnedScale) else ScalePer.SUBLAYER
        self.scale = nn.Parameter(torch.ones(_size_of_scale(per, self.edit.write, shape), dtype=torch.float64))

    def common_factor(self) -> Tensor:
        """Return s."""
        return self.scale


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


class TanhDelta(PortDelta):
    """``h + tanh(g) Delta`` with g = 0 at the start."""

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Add g, which starts at 0."""
        self.factor = nn.ParameterDict({"g": torch.zeros((), dtype=torch.float64)})

    def common_factor(self) -> Tensor:
        """Return ``tanh(g)``."""
        return torch.tanh(self.factor["g"])


class SigmoidDelta(PortDelta):
    """``h + sigmoid(z w + b) Delta``."""

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Add w and b."""
        self.factor = SigmoidFactor(blocks_of(self.edit, shape))

    def token_weights(self, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """Return the sigmoid of each token and head."""
        each: Tensor = self.factor(z)
        return each


class ConvexDelta(PortDelta):
    """``(1 - lambda) h + lambda Delta`` of a table, whose rows are prepended to the keys."""

    is_prefix = True


class SampleDelta(SigmoidDelta):
    """``h + g Delta`` with the mean g of a sigmoid over a sample's tokens."""

    is_of_sample = True

    def token_weights(self, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """Return the mean over a sample, ``(B, 1, [H,] 1)``."""
        return sample_mean(self.factor(z), weight)


class ConvexSampleDelta(SampleDelta):
    """A prefix whose keys and values are multiplied with the mean sigmoid of attention's input."""

    is_prefix = True
    gate_input = Port.X_ATTN

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Add w and b for attention's input."""
        width = shape.port_width(Port.X_ATTN)
        self.factor = SigmoidFactor(Blocks(number=1, is_per_head=False, query_heads=1, in_width=width, out_width=1))


def sample_mean(each: Tensor, real: Tensor | None) -> Tensor:
    """Return the mean over the tokens of a sample, ``(B, T, ...)`` to ``(B, 1, ...)``.

    Args:
        each: Number for each token, and possibly for each head.
        real: Mask of real tokens, ``(B, T, 1)``; None for all.
    """
    if real is None:
        return each.mean(dim=1, keepdim=True)
    counted = real.to(each.dtype).reshape(*real.shape[:2], *(1,) * (each.dim() - 2))
    return (each * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True).clamp_min(1)


class WeightedDelta(PortDelta):
    """``h + lambda Delta`` of a table."""

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Return the log-sum-exp over the rows of the table."""
        wide = torch.promote_types(query.dtype, torch.float32)
        keys = self.table()[0].to(query.dtype)  # (N, R, d_h)
        keys = keys.repeat_interleave(query.shape[-2] // keys.shape[0], dim=0)
        logits = torch.einsum("bthd,hrd->bthr", query, keys).to(wide) * scaling
        table: Any = self.form
        masked: Tensor = table.masked(logits)
        return torch.logsumexp(masked, dim=-1)


class InducerDelta(PortDelta):
    """``h + lambda Delta`` of an inducer, or ``(1 - lambda) h + lambda Delta``.

    It has one key per query: ``q + MLP_k(q)``, with q before its rotation in the MLP (Chen et al. 2022), or q itself.
    """

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Add MLP_k, if there is one."""
        self.keys: InducerKeys | None = None
        match self.edit.gate:
            case gates.InducerGate(key_width=int(hidden)) | gates.ConvexInducerGate(key_width=int(hidden)):
                self.keys = InducerKeys(shape, hidden, generator)

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Return the logit of the single key."""
        wide = torch.promote_types(query.dtype, torch.float32)
        keys = query if self.keys is None else query + self.keys(projected).to(query.dtype)
        return (query.to(wide) * keys.to(wide)).sum(dim=-1) * scaling


class SigmoidFactor(nn.Module):
    """``sigmoid(z w + b)`` per token, and per head for forms per head; w and b start at zero."""

    def __init__(self, blocks: Blocks) -> None:
        """Initialise with zeros, which gives a factor of 1/2."""
        super().__init__()
        self.blocks = blocks
        self.weight = nn.Parameter(torch.zeros(blocks.shape(blocks.in_width, 1), dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(blocks.bias_shape(1), dtype=torch.float64))

    def forward(self, z: Tensor) -> Tensor:
        """Map ``(B, T, D_in)`` or ``(B, T, H, D_in)`` to ``(B, T, [H,] 1)``."""
        logits = block_product(z, self.weight, self.blocks)
        return torch.sigmoid(logits + self.blocks.spread(self.bias).to(logits.dtype))


class InducerKeys(nn.Module):
    """``MLP_k(q) = tanh(q A + a) B + b`` per query head, a virtual key minus its query (Chen et al. 2022).

    All parameters start as remainders of N(0, 1) by 2, times 0.01.
    """

    def __init__(self, shape: BackboneShape, hidden: int, generator: torch.Generator) -> None:
        """Draw the weights and biases."""
        super().__init__()
        heads, width = shape.query_heads, shape.head_width
        self.blocks = Blocks(number=heads, is_per_head=True, query_heads=heads, in_width=width, out_width=width)
        self.down = nn.Parameter(remainder_normal((heads, width, hidden), generator))
        self.down_bias = nn.Parameter(remainder_normal((heads, hidden), generator))
        self.up = nn.Parameter(remainder_normal((heads, hidden, width), generator))
        self.up_bias = nn.Parameter(remainder_normal((heads, width), generator))

    def forward(self, q: Tensor) -> Tensor:
        """Map ``(B, T, H, d_h)``, before rotation and scaling, to ``(B, T, H, d_h)``."""
        hidden = block_product(q, self.down, self.blocks)  # (B, T, H, R)
        out = block_product(torch.tanh(hidden + self.down_bias.to(hidden.dtype)), self.up, self.blocks)
        return out + self.up_bias.to(out.dtype)


GATE_DELTAS: Mapping[str, type[PortDelta]] = {
    gates.Add.name: PortDelta,
    gates.FixedScale.name: FixedScaleDelta,
    gates.LearnedScale.name: LearnedScaleDelta,
    gates.TanhGate.name: TanhDelta,
    gates.SigmoidGate.name: SigmoidDelta,
    gates.ConvexGate.name: ConvexDelta,
    gates.WeightedGate.name: WeightedDelta,
    gates.InducerGate.name: InducerDelta,
    gates.ConvexInducerGate.name: InducerDelta,
    gates.Multiply.name: PortDelta,
    gates.Prepend.name: PortDelta,
    gates.SampleGate.name: SampleDelta,
    gates.ConvexSampleGate.name: ConvexSampleDelta,
}
"""Module class of every gate, by the gate's name; prompts need none of their own."""
