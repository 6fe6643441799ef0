"""One edit at one sublayer: its form's module, joined with its gate."""

import torch
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from trial_runner.deltas.affine import Affine
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.form_delta import FormDelta
from trial_runner.deltas.gates import Gated, gate_of


class PortDelta(Gated):
    """One edit at one sublayer: its form's module and its gate.

    Args:
        form: The module of its form here.
        generator: Draws the gate's initial values.
    """

    def __init__(self, edit: Edit, form: FormDelta, shape: BackboneShape, generator: torch.Generator) -> None:
        """Join a form's module with the edit's gate."""
        super().__init__(edit, form)
        self.gate = gate_of(edit)
        self._is_summed = blocks_of(edit, shape).is_summed
        for name, part in self.gate.parts(edit, shape, generator):
            setattr(self, name, part)

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
        if self.edit.gate.multiplies and z is not None:
            replaced: Tensor = self.form(z)
            return replaced - z
        if self.form.holds_scale:
            changed: Tensor = self.form(z, self.fixed_scale if self.scale is None else self.scale)
            return changed
        weight = self.gate.weight(self, z, weight)
        out: Tensor = self.form(z, weight if self._is_summed else None, scaling)
        if weight is not None and not self._is_summed:
            out = out * weight.to(out.dtype)
        return self.gate.scaled(self, out)

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
        return self.form.affine_under(self.gate.factor(self))

    def share(self, z: Tensor, real: Tensor | None) -> Tensor | None:
        """What the rows of a prefix are multiplied with for each sample, ``(B, 1, 1)``.

        Args:
            z: What the gate reads, ``(B, T, D)``.
            real: Which tokens count, ``(B, T, 1)``; None for all.
        """
        return self.gate.weight(self, z, real)

    def own_logits(self, query: Tensor, projected: Tensor, scaling: float) -> Tensor:
        """Log-sum-exp of the logits of the edit's own keys, ``(B, T, H)``, in at least float32.

        Args:
            query: As it meets the base keys, ``(B, T, H, d_h)``.
            projected: The same before its normalisation and rotation.
            scaling: Factor of the logits.
        """
        return self.gate.own_logits(self, query, projected, scaling)
