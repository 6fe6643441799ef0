"""MLP that produces the tables of all layers during training."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from trial_runner.deltas.blocks import draw_layer
from trial_runner.deltas.form_delta import Padding, SharedDelta


class PrefixStack(SharedDelta):
    """MLP that produces the prefixes of all layers of one attention kind (Li & Liang 2021).

    ``Embedding(l, d) -> Linear(d, mid) -> tanh -> Linear(mid, 2 L d_kv)``, the last axis viewed as (layer, key or
    value, head, d_h). The embedding starts as N(0, 1), the layers as PyTorch's do.

    Attributes:
        is_real: Mask of real rows, as in `SoftmaxMemoryDelta`.
    """

    paddings: ClassVar = {"embedding": Padding(axis=-2, in_front=True, mask_name="is_real")}
    is_of_one_site = True
    label = "stack"
    is_real: Tensor | None

    def __init__(self, *, length: int, width: int, hidden: int, layers: int, heads: int, head_width: int) -> None:
        """Create the layers; `build` initialises them."""
        super().__init__()
        self._heads = (heads, head_width)
        self.register_buffer("is_real", None, persistent=False)
        self.embedding = nn.Parameter(torch.zeros(length, width, dtype=torch.float64))
        self.middle = nn.Linear(width, hidden, dtype=torch.float64)
        self.outer = nn.Linear(hidden, 2 * layers * heads * head_width, dtype=torch.float64)

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> "PrefixStack":
        """Build and initialise the MLP of an edit."""
        form: Any = edit.form
        stack = cls(
            length=form.width,
            width=shape.width,
            hidden=form.reparameterization,
            layers=layers,
            heads=shape.heads(form.heads),
            head_width=shape.head_width,
        )
        with torch.no_grad():
            stack.embedding.normal_(generator=generator)
        for layer in (stack.middle, stack.outer):
            draw_layer(layer, layer.in_features, generator)
        return stack

    def table(self, layer: int) -> tuple[Tensor, Tensor]:
        """Compute keys and values ``(N_kv, l, d_h)`` of one layer."""
        heads, head_width = self._heads
        hidden = torch.tanh(self.middle(self.embedding))  # (l, mid)
        size = 2 * heads * head_width
        rows = slice(layer * size, (layer + 1) * size)
        flat = torch.nn.functional.linear(hidden, self.outer.weight[rows], self.outer.bias[rows])
        keys, values = flat.view(-1, 2, heads, head_width).permute(1, 2, 0, 3)
        return keys, values
