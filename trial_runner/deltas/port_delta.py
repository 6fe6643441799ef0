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
    """One edit at one sublayer: its form's module under a gate without parameters.

    `GATE_DELTAS` has the class of every gate.

    Args:
        form: Module of the form.
        generator: Generator of the gate's initial values, on the CPU.

    Attributes:
        is_prefix: Whether the edit is only rows prepended to the keys.
        is_of_sample: Whether the gate has a number per sample; `token_weights` then receives the mask of real tokens.
        gate_input: Port that the gate alone reads; None without one.
    """

    is_prefix: ClassVar[bool] = False
    is_of_sample: ClassVar[bool] = False
    gate_input: ClassVar[Port | None] = None

    def __init__(self, edit: Edit, form: FormDelta, shape: BackboneShape, generator: torch.Generator) -> None:
        """Join a form's module with the edit's gate."""
        super().__init__()
        self.edit = edit
        self.form = form
        self._is_summed = blocks_of(edit, shape).is_summed
        self.add_gate(shape, generator)

    @property
    def paddings(self) -> Mapping[str, Padding]:
        """Paddings of the form, as in `DeltaModule`; the gate's tensors have fixed widths."""
        return {f"form.{name}": padding for name, padding in self.form.paddings.items()}

    @property
    def is_sequential(self) -> bool:
        """Whether the edit changes its port after the edits that read another one."""
        return self.edit.insertion is Insertion.SEQUENTIAL

    @property
    def reads(self) -> set[Port]:
        """Ports whose tensors must be kept for the edit."""
        read = None if self.is_sequential or self.is_prefix else self.edit.read
        query = None if self.edit.gate.logits is None or self.is_prefix else Port.Q
        return {port for port in (read, query, self.gate_input) if port is not None}

    def add_gate(self, shape: BackboneShape, generator: torch.Generator) -> None:
        """Register the parameters and buffers of the gate."""

    def token_weights(self, z: Tensor | None, weight: Tensor | None) -> Tensor | None:
        """Return the factor of each token and head, ``(B, T, [H,] 1)``, or ``(B, 1, 1)`` for a prefix; None is 1.

        Args:
            z: Input.
            weight: Weight from the logits; for gates of samples the mask of real tokens, ``(B, T, 1)``, None for all.
        """
        return weight

    def common_factor(self) -> Tensor | None:
        """Return the factor that is equal for all tokens; None is 1."""
        return None

    def scaled(self, out: Tensor) -> Tensor:
        """Multiply the contribution with the common factor."""
        factor = self.common_factor()
        return out if factor is None else out * factor.to(out.dtype)

    def linear_factor(self) -> Tensor:
        """Return the factor of a linear contribution, in float64: ``()`` or one per channel ``(D_out,)``."""
        factor = self.common_factor()
        return torch.tensor(1.0, dtype=torch.float64) if factor is None else factor.detach().double()

    def delta(self, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Compute the edit's contribution, which is added to the port it writes.

        Args:
            z: Input, ``(B, T, D_in)`` or ``(B, T, H, D_in)``; None for constants.
            weight: Weight lambda of a log-sum-exp or inducer gate, ``(B, T, H, 1)``; None is 1. It multiplies the
                heads' outputs, or the hidden units if heads are summed: the bias of the sum is unweighted.
            scaling: Factor of scaled queries, as in their attention; None means 1/sqrt(d_h).

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
        weight = self.token_weights(z, weight)
        out = self.form(z, weight if self._is_summed else None, scaling)
        if weight is not None and not self._is_summed:
            out = out * weight.to(out.dtype)
        return self.scaled(out)

    def compose(
        self, h: Tensor, z: Tensor | None, weight: Tensor | None = None, scaling: float | None = None
    ) -> Tensor:
        """Return the edited port: ``h * l`` under the gate ``mul``, else ``h`` plus `delta`, in h's precision.

        The attention itself computes ``(1 - lambda) h`` of a convex inducer.
        """
        if self.edit.gate.multiplies:
            replaced: Tensor = self.form(h)
            return replaced
        return h + self.delta(z, weight, scaling).to(h.dtype)

    def affine(self) -> Affine:
        """Return the contribution of a linear edit with its gate; for ``mul`` the whole map."""
        return self.form.affine_under(self.linear_factor())

    def table(self) -> tuple[Tensor, Tensor]:
        """Return keys and values ``(N, R, d_h)`` of a prefix."""
        return self.form.table()

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Return the log-sum-exp of the logits of the edit's own keys, ``(B, T, H)``, in at least float32.

        Args:
            query: Query at the base keys, ``(B, T, H, d_h)``.
            projected: Query before its normalisation and rotation.
            scaling: Factor of the logits.
        """
        raise NotImplementedError
