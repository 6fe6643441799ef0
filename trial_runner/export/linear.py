"""The linear layers that edits are merged into; which edits can be is `search_space.mergeability`'s matter.

A linear layer computes ``z W + b``. An affine edit ``z -> z * d + (z P) Q + c`` of what the layer writes, of what it
reads, or in parallel to it makes another linear layer of it. Shapes: as of `trial_runner.deltas.affine`.
"""

import torch
from torch import Tensor, nn

from search_space.backbones import PortLocation
from trial_runner.deltas.affine import Affine
from trial_runner.errors import ExportError
from trial_runner.linear_layers import dense_weight


class LinearSlice:
    """The linear layer behind a port: a whole module, or the columns of a fused one.

    Args:
        module: ``nn.Linear``, which stores ``(D_out, D_in)``, or the ``Conv1D`` of GPT-2, which stores it transposed.
        location: Of the port that it writes.
    """

    def __init__(self, module: nn.Module, location: PortLocation) -> None:
        """Find the columns."""
        self._weight = dense_weight(module)  # (D_in, all columns)
        bias = module.bias
        self._bias = bias.detach() if isinstance(bias, Tensor) else None
        self._columns = location.columns(self._weight.shape[1])
        self.matrix = self._weight[:, self._columns].double()  # (D_in, D_out)
        none = torch.zeros(self.matrix.shape[1], dtype=torch.float64, device=self._weight.device)
        self.bias = none if self._bias is None else self._bias[self._columns].double()  # (D_out,)

    def add(self, beside: Affine) -> None:
        """A map of the same input, in parallel."""
        self.matrix = self.matrix + beside.matrix(self.matrix)
        self.bias = self.bias if beside.shift is None else self.bias + beside.shift

    def follow(self, after: Affine, *, replaces: bool) -> None:
        """A map of what the layer writes: added to it, or in its place."""
        matrix, bias = after(self.matrix), after(self.bias.unsqueeze(0)).squeeze(0)
        self.matrix = matrix if replaces else self.matrix + matrix
        self.bias = bias if replaces else self.bias + bias
        self.bias = self.bias if after.shift is None else self.bias + after.shift

    def precede(self, first: Affine, *, replaces: bool) -> None:
        """A map of what the layer reads: added to it, or in its place."""
        if first.shift is not None:
            self.bias = self.bias + first.shift @ self.matrix
        matrix = first.before(self.matrix)
        self.matrix = matrix if replaces else self.matrix + matrix

    def store(self) -> None:
        """Write the matrix and the bias back into the module.

        Raises:
            ExportError: If there is a bias that the module has no place for.
        """
        self._weight[:, self._columns] = self.matrix.to(self._weight.dtype)
        if self._bias is not None:
            self._bias[self._columns] = self.bias.to(self._bias.dtype)
        elif self.bias.any():
            raise ExportError(
                "a bias must have a place in the layer that it is merged into; there is none. This is a bug."
            )
