"""Frozen matrix that writes a port, for forms that change the matrix and not only its output."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from search_space.backbones import family_of_shape
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.edit import Edit
from trial_runner.deltas.blocks import product
from trial_runner.errors import AttachError
from trial_runner.linear_layers import QuantizedLinear

Frozen = Mapping[str, Tensor | QuantizedLinear]
"""Weights of a base model by name; see `trial_runner.linear_layers.frozen_weights`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenMatrix:
    """Weight of a frozen linear layer, with the columns that write a port.

    Attributes:
        held: ``(D_in, all columns)``, a view of the backbone's weight; or the quantised layer.
        columns: Columns of the port.
    """

    held: Tensor | QuantizedLinear
    columns: slice

    @property
    def layer(self) -> Tensor:
        """``(D_in, all columns)``; recomputed on each access for a quantised layer, so do not keep it."""
        return self.held.dense().T if isinstance(self.held, QuantizedLinear) else self.held

    @property
    def matrix(self) -> Tensor:
        """``(D_in, D_out)``, the port's columns of `layer`."""
        return self.layer[:, self.columns]

    @property
    def norms(self) -> Tensor:
        """Norms of all columns of the layer, in float64 on the CPU."""
        norms: Tensor = torch.linalg.vector_norm(self.layer, dim=0, dtype=torch.float64)
        return norms.cpu()

    def product(self, z: Tensor) -> Tensor:
        """Compute ``z W``, ``(..., D_in)`` to ``(..., D_out)``; gradients keep no dense weights of quantised layers."""
        if isinstance(self.held, QuantizedLinear):
            return self.held.product(z, self.columns)
        return product(z, self.matrix)


def frozen_matrix(frozen: Frozen | None, shape: BackboneShape, sublayer: Sublayer, edit: Edit) -> FrozenMatrix:
    """Return the matrix of the linear layer that writes the port of an edit.

    Args:
        frozen: Weights of the base model by name.
        shape: Shape of the backbone.

    Raises:
        AttachError: If the matrix is missing or not of floating-point numbers.
    """
    need = f"{edit.form.name} needs the frozen matrix that writes {edit.write} of {shape.family}"
    if frozen is None:
        raise AttachError(f"{need}; got no weights. Use lowrank.")
    table = family_of_shape(shape).ports(shape)
    location = table.ports[sublayer.stack, sublayer.site, edit.write]
    name = f"{table.layers[sublayer.stack].format(layer=sublayer.layer)}.{location.module}.weight"
    weight = frozen.get(name)
    if isinstance(weight, QuantizedLinear):
        return FrozenMatrix(held=weight, columns=location.columns(weight.out_features))
    if weight is None or weight.dim() != 2 or not weight.is_floating_point():
        got = f"no {name}" if weight is None else f"{name} of {weight.dtype}, {tuple(weight.shape)}"
        raise AttachError(f"{need}; got {got}. Use lowrank.")
    layer = weight.detach() if table.is_transposed else weight.detach().T
    return FrozenMatrix(held=layer, columns=location.columns(layer.shape[1]))
