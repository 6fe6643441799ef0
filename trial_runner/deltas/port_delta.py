"""One edit at one sublayer: its form's module, joined with its gate."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Insertion, Port
from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.form_delta import FormDelta, Padding


class PortDelta(nn.Module):
    """One edit at one sublayer: its form's module, under a gate that trains nothing; `GATE_DELTAS` has one by gate.

    Args:
        form: The module of its form here.
        generator: Draws the gate's initial values, on the CPU.

    Attributes:
        is_prefix: Whether its rows stand before the keys, which does all that it is.
        is_of_sample: Whether its gate has a number for each sample; `weighed` is given which tokens are real.
        beside: What is read for the gate alone; None for nothing.
    """

    is_prefix: ClassVar[bool] = False
    is_of_sample: ClassVar[bool] = False
    beside: ClassVar[Port | None] = None

    def __init__(self, edit: Edit, form: FormDelta, shape: BackboneShape, generator: torch.Generator) -> None:
        """Join a form's module with the edit's gate."""
        super().__init__()
        self.edit = edit
        self.form = form
        self._is_summed = blocks_of(edit, shape).is_summed
        self.add_gate(shape, generator)

    @property
    def paddings(self) -> Mapping[str, Padding]:
        """See `DeltaModule`; its gate's are of one width."""
        return {f"form.{name}": padding for name, padding in self.form.paddings.items()}

    @property
    def is_sequential(self) -> bool:
        """Whether it changes its port after the edits that read another one."""
        return self.edit.insertion is Insertion.SEQUENTIAL

    @property
    def reads(self) -> set[Port]:
        """The ports whose tensors must be kept for it."""
        read = None if self.is_sequential or self.is_prefix else self.edit.read
        query = None if self.edit.gate.logits is None or self.is_prefix else Port.Q
        return {port for port in (read, query, self.beside) if port is not None}

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Register what the gate trains or fixes."""

    def weighed(self, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """Factor of each token and head, ``(B, T, [H,] 1)``; of the rows of a prefix ``(B, 1, 1)``; None is 1.

        Args:
            z: What is read.
            weight: What the logits give; of a gate of samples, which tokens are real, ``(B, T, 1)``, None for all.
        """
        return weight

    def common_factor(self) -> Tensor | None:
        """What the contribution is multiplied with, the same for all tokens; None is 1."""
        return None

    def scaled(self, out: Tensor) -> Tensor:
        """The contribution times it."""
        factor = self.common_factor()
        return out if factor is None else out * factor.to(out.dtype)

    def linear_factor(self) -> Tensor:
        """Factor of a linear contribution, in float64: a number ``()`` or one per channel ``(D_out,)``."""
        factor = self.common_factor()
        return torch.tensor(1.0, dtype=torch.float64) if factor is None else factor.detach().double()

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
        out: Tensor
        if self.edit.gate.multiplies and z is not None:
            out = self.form(z)
            return out - z
        if self.form.holds_scale:
            out = self.form(z, self.common_factor())
            return out
        weight = self.weighed(z, weight)
        out = self.form(z, weight if self._is_summed else None, scaling)
        if weight is not None and not self._is_summed:
            out = out * weight.to(out.dtype)
        return self.scaled(out)

    def compose(
        self, h: Tensor, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None
    ) -> Tensor:
        """The port with the edit in it: ``h * l`` under the gate ``mul``, else ``h`` plus `delta`, in h's precision.

        What else a convex inducer does to its heads, ``(1 - lambda) h``, is for the attention to do.
        """
        if self.edit.gate.multiplies:
            replaced: Tensor = self.form(h)
            return replaced
        return h + self.delta(z, weight, scaling).to(h.dtype)

    def affine(self) -> Affine:
        """The contribution of a linear edit, its gate included; of the gate ``mul`` the whole map."""
        return self.form.affine_under(self.linear_factor())

    def table(self) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N, R, d_h)`` of a prefix."""
        return self.form.table()

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Log-sum-exp of the logits of the edit's own keys, ``(B, T, H)``, in at least float32.

        Args:
            query: As it meets the base keys, ``(B, T, H, d_h)``.
            projected: The same before its normalisation and rotation.
            scaling: Factor of the logits.
        """
        raise NotImplementedError
