"""One edit at one sublayer: its form's module, joined with its gate."""

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.gates import (
    ConvexInducerGate,
    FixedScale,
    InducerGate,
    LearnedScale,
    Multiply,
    SigmoidGate,
    TanhGate,
    WeightedGate,
)
from trial_runner.deltas import FormDelta, blocks_of
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.gates import InducerKeys, SigmoidFactor, TanhFactor, learned_scale
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.phm import PhmDelta, PhmShared
from trial_runner.deltas.softmax_memory import PrefixStack, SoftmaxMemoryDelta, StackedBottleneck, StackedPrefix
from trial_runner.errors import AttachError


class PortDelta(nn.Module):
    """One edit at one sublayer: its form's module and its gate.

    Args:
        edit: The edit.
        form: The module of its form here.
        shape: The backbone.
        generator: Draws the gate's initial values.

    Attributes:
        scale: The trained scale, ones at the start; None without one.
        factor: The trained gate of a number per sublayer or token; None without one.
        keys: MLP_k of an inducer; None without one.
        fixed_scale: The scale of a gate that has a fixed one, ``()``; None without one.
    """

    fixed_scale: Tensor | None

    def __init__(self, edit: Edit, form: FormDelta, shape: BackboneShape, generator: torch.Generator) -> None:
        """Join a form's module with the edit's gate."""
        super().__init__()
        self.edit = edit
        self.form = form
        self.scale: nn.Parameter | None = None
        self.factor: TanhFactor | SigmoidFactor | None = None
        self.keys: InducerKeys | None = None
        self.register_buffer("fixed_scale", None, persistent=False)
        blocks = blocks_of(edit, shape)
        self._is_summed = blocks.is_summed
        match edit.gate:
            case FixedScale(value=value):
                self.fixed_scale = torch.tensor(value, dtype=torch.float64)
            case LearnedScale(per=per):
                self.scale = learned_scale(per, edit.write, shape)
            case TanhGate():
                self.factor = TanhFactor()
            case SigmoidGate():
                self.factor = SigmoidFactor(blocks)
            case InducerGate(key_width=int(hidden)) | ConvexInducerGate(key_width=int(hidden)):
                self.keys = InducerKeys(shape, hidden, generator)

    def delta(self, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """The edit's contribution, to be added to the port it writes.

        Args:
            z: What is read, ``(B, T, D_in)`` or ``(B, T, H, D_in)``; None for constants.
            weight: lambda of a gate of log-sum-exps or an inducer, ``(B, T, H, 1)``; None is 1. It multiplies what
                the heads get, or, where they are summed, the hidden units: the bias of the sum goes without it.
            scaling: Factor of queries that are read scaled, as their attention scales them; None means 1/sqrt(d_h).

        Returns:
            ``(B, T, D_out)``, ``(B, T, H, d_h)`` at the heads, ``(D_out,)`` for constants.
        """
        if isinstance(self.edit.gate, Multiply) and z is not None:
            return self._output(z) - z
        if isinstance(self.factor, SigmoidFactor):
            weight = self.factor(z)
        out = self._output(z, weight if self._is_summed else None, scaling)
        if weight is not None and not self._is_summed:
            out = out * weight.to(out.dtype)
        if isinstance(self.factor, TanhFactor):
            out = out * self.factor().to(out.dtype)
        if self.scale is not None:
            out = out * self.scale.to(out.dtype)
        return out if self.fixed_scale is None else out * self.fixed_scale

    def compose(
        self, h: Tensor, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None
    ) -> Tensor:
        """The port with the edit in it: ``h * l`` under the gate ``mul``, else ``h`` plus `delta`, in h's precision.

        What else a convex inducer does to its heads, ``(1 - lambda) h``, is for the attention to do.
        """
        if isinstance(self.edit.gate, Multiply):
            return self._output(h)
        return h + self.delta(z, weight, scaling).to(h.dtype)

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
        """Keys and values ``(N, R, d_h)`` of a prefix.

        Raises:
            AttachError: If the form is no table.
        """
        if not isinstance(self.form, SoftmaxMemoryDelta | StackedPrefix):
            raise AttachError(f"the gate {self.edit.gate.name} needs a softmax memory; got {self.edit.form.name}.")
        return self.form.table()

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Log-sum-exp of the logits of the edit's own keys, ``(B, T, H)``, in at least float32.

        Of a table it goes over the rows. An inducer has one key per query, ``q + MLP_k(q)``, whose MLP takes q before
        its rotation (Chen et al. 2022).

        Args:
            query: As it meets the base keys, ``(B, T, H, d_h)``.
            projected: The same before its normalisation and rotation.
            scaling: Factor of the logits.
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        if isinstance(self.edit.gate, WeightedGate):
            keys = self.table()[0].to(query.dtype)  # (N, R, d_h)
            keys = keys.repeat_interleave(query.shape[-2] // keys.shape[0], dim=0)
            logits = torch.einsum("bthd,hrd->bthr", query, keys).to(wide) * scaling
            is_real = getattr(self.form, "is_real", None)
            if is_real is not None:
                logits = logits.masked_fill(~is_real, -torch.inf)
            return torch.logsumexp(logits, dim=-1)
        offset = self.key_offset(projected)
        keys = query if offset is None else query + offset.to(query.dtype)
        return (query.to(wide) * keys.to(wide)).sum(dim=-1) * scaling

    def shared_module(self) -> PhmShared | PrefixStack | None:
        """The module that this edit shares with its like at other sublayers; its parameters are not listed here."""
        match self.form:
            case StackedPrefix() | StackedBottleneck():
                return self.form.stack
            case PhmDelta():
                return self.form.down.shared
            case _:
                return None

    def _output(self, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """What the form computes; some know a weight of heads that are summed, or read queries scaled."""
        match self.form:
            case BottleneckDelta() | SoftmaxMemoryDelta() | StackedBottleneck() | StackedPrefix():
                out: Tensor = self.form(z, weight, scaling)
            case LowRankDelta():
                out = self.form(z, weight)
            case _:
                out = self.form(z)
        return out
