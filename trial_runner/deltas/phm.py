"""Compacter: bottlenecks whose matrices are sums of Kronecker products."""

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.forms import Form, Phm
from trial_runner.deltas.blocks import ACTIVATIONS, normal, product, uniform
from trial_runner.deltas.form_delta import FormDelta, FormPlace, SharedDelta

# released code: C shared by the whole model, and C of a single projection
_SHARED_DEVIATION = 1e-4
_OWN_DEVIATION = 0.01


class PhmShared(SharedDelta):
    """Small factors C ``(n, n, n)`` that all edits of a configuration share; drawn from N(0, 0.0001^2)."""

    label = "shared"

    def __init__(self, n: int, generator: torch.Generator) -> None:
        """Draw the factors."""
        super().__init__()
        self.rule = nn.Parameter(normal((n, n, n), _SHARED_DEVIATION, generator))

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> "PhmShared":
        """Build C of the form's size."""
        form: Any = edit.form
        return cls(form.n, generator)

    @classmethod
    def key(cls, edit: Edit, shape: BackboneShape) -> Hashable:
        """Return the number of products."""
        form: Any = edit.form
        return form.n  # type: ignore[no-any-return]


class PhmMatrix(nn.Module):
    """``W = sum_i C_i (x) B_i``, C_i ``(n, n)``, B_i ``(D_in/n, D_out/n)``, the latter full or ``s_i t_i^T``.

    B, or s and t, start as Glorot's uniform (Karimi Mahabadi et al. 2021).

    Args:
        form: Form with n and the rank of B.
        in_width: D_in.
        out_width: D_out.
        shared: Shared C of the configuration; None creates an own one.
    """

    def __init__(
        self, form: Phm, in_width: int, out_width: int, generator: torch.Generator, shared: PhmShared | None
    ) -> None:
        """Draw the factors; a shared C is not registered a second time."""
        super().__init__()
        self._shared = (shared,)
        self.rule = nn.Parameter(normal((form.n,) * 3, _OWN_DEVIATION, generator)) if shared is None else None
        n, rows, columns, rank = form.n, in_width // form.n, out_width // form.n, form.factor_rank
        self.whole = nn.Parameter(_glorot((n, rows, columns), generator)) if rank is None else None
        self.left = None if rank is None else nn.Parameter(_glorot((n, rows, rank), generator))
        self.right = None if rank is None else nn.Parameter(_glorot((n, rank, columns), generator))

    def forward(self) -> Tensor:
        """Compute the matrix ``(D_in, D_out)``."""
        rule = self.rule if self._shared[0] is None else self._shared[0].rule
        factors: Tensor | None = self.whole
        if self.left is not None and self.right is not None:
            factors = self.left @ self.right  # (n, D_in/n, D_out/n)
        return torch.einsum("iab,icd->acbd", rule, factors).flatten(2).flatten(0, 1)


def _glorot(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return uniform(shape, (6 / (shape[-2] + shape[-1])) ** 0.5, generator)


class PhmDelta(FormDelta):
    """``act(z W_down + b_down) W_up + b_up`` with matrices of Kronecker products; biases start at zero.

    R is a multiple of ``form.n``; each projection has its own C unless the configuration shares it.
    """

    def __init__(self, edit: Edit, place: FormPlace, generator: torch.Generator) -> None:
        """Draw the matrices."""
        super().__init__(edit, place, generator)
        form: Any = edit.form
        shared = self.shared if form.shared else None
        in_width, width, out_width = place.blocks.in_width, place.width, place.blocks.out_width
        self._activation = ACTIVATIONS[form.activation]
        self.down = PhmMatrix(form, in_width, width, generator, shared)
        self.up = PhmMatrix(form, width, out_width, generator, shared)
        self.down_bias = nn.Parameter(torch.zeros(width, dtype=torch.float64)) if form.bias else None
        self.up_bias = nn.Parameter(torch.zeros(out_width, dtype=torch.float64)) if form.bias else None

    @classmethod
    def shares(cls, form: Form) -> type[PhmShared] | None:
        """Return the class of the shared C, if it is shared."""
        return PhmShared if isinstance(form, Phm) and form.shared else None

    def forward(self, z: Tensor, weight: Tensor | None = None, scaling: float | None = None) -> Tensor:
        """Map ``(B, T, D_in)`` to ``(B, T, D_out)``."""
        hidden = product(z, self.down())  # (B, T, R)
        if self.down_bias is not None:
            hidden = hidden + self.down_bias.to(hidden.dtype)
        out = product(self._activation(hidden), self.up())  # (B, T, D_out)
        return out if self.up_bias is None else out + self.up_bias.to(out.dtype)
