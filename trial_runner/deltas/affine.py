"""Affine maps ``z -> z * d + (z P) Q + z M + c``, which can be merged into a linear layer.

Shapes: P ``(D_in, R)``, Q ``(R, D_out)``, M ``(D_in, D_out)``.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Affine:
    """``z -> z * diagonal + (z down) up + z whole + shift`` in float64; parts that are None are left out.

    Attributes:
        diagonal: ``(D,)`` or a single number ``()``.
        down: ``(D_in, R)``, with ``up``.
        up: ``(R, D_out)``.
        whole: ``(D_in, D_out)``.
        shift: ``(D_out,)``.
    """

    diagonal: Tensor | None = None
    down: Tensor | None = None
    up: Tensor | None = None
    whole: Tensor | None = None
    shift: Tensor | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        """Apply the linear part to rows ``(N, D_in)``; returns ``(N, D_out)``."""
        parts = [] if self.diagonal is None else [rows * self.diagonal]
        if self.down is not None and self.up is not None:
            parts.append((rows @ self.down) @ self.up)
        if self.whole is not None:
            parts.append(rows @ self.whole)
        return torch.stack(parts).sum(dim=0) if parts else torch.zeros_like(rows)

    def times(self, factor: Tensor) -> "Affine":
        """Return the map times a number ``()``, or one per channel ``(D_out,)``."""
        return Affine(
            diagonal=None if self.diagonal is None else self.diagonal * factor,
            down=self.down,
            up=None if self.up is None else self.up * factor,
            whole=None if self.whole is None else self.whole * factor,
            shift=None if self.shift is None else self.shift * factor,
        )

    def before(self, matrix: Tensor) -> Tensor:
        """Return the matrix of this map's linear part followed by ``matrix`` ``(D_out, N)``."""
        parts = [] if self.diagonal is None else [self.diagonal.unsqueeze(-1) * matrix]
        if self.down is not None and self.up is not None:
            parts.append(self.down @ (self.up @ matrix))
        if self.whole is not None:
            parts.append(self.whole @ matrix)
        return torch.stack(parts).sum(dim=0) if parts else torch.zeros_like(matrix)

    def matrix(self, like: Tensor) -> Tensor:
        """Return the linear part as ``(D_in, D_out)``."""
        matrix = torch.zeros_like(like)
        if self.diagonal is not None:
            matrix += torch.diag(self.diagonal.expand(like.shape[1]))
        if self.down is not None and self.up is not None:
            matrix += self.down @ self.up
        return matrix if self.whole is None else matrix + self.whole
