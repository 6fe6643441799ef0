"""The MLP that produces the tables of all layers while they are trained."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.forms import SizedForm
from trial_runner.deltas.form_delta import FormDelta, Padding, SharedDelta
from trial_runner.errors import AttachError


class PrefixStack(SharedDelta):
    """The MLP that produces the prefixes of all layers of one attention kind (Li & Liang 2021).

    ``Embedding(l, d) -> Linear(d, mid) -> tanh -> Linear(mid, 2 L d_kv)``, the last axis viewed as (layer, key or
    value, head, d_h). The embedding starts as N(0, 1), the layers as PyTorch's do.

    Attributes:
        is_real: As of `SoftmaxMemoryDelta`.
    """

    paddings: ClassVar = {"embedding": Padding(axis=-2, in_front=True, marks="is_real")}
    is_of_one_site = True
    is_real: Tensor | None

    def __init__(self, *, length: int, width: int, hidden: int, layers: int, heads: int, head_width: int) -> None:
        """Make the stack; `reset` draws its numbers."""
        super().__init__()
        self._heads = (heads, head_width)
        self.register_buffer("is_real", None, persistent=False)
        self.embedding = nn.Parameter(torch.zeros(length, width, dtype=torch.float64))
        self.middle = nn.Linear(width, hidden, dtype=torch.float64)
        self.outer = nn.Linear(hidden, 2 * layers * heads * head_width, dtype=torch.float64)

    @classmethod
    def build(cls, edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> "PrefixStack":
        """See `SharedDelta`."""
        form = edit.form
        if not isinstance(form, SizedForm) or form.reparameterization is None:
            raise AttachError(f"a table from an MLP needs a form with a reparameterization; got {form.name}.")
        stack = cls(
            length=form.width,
            width=shape.width,
            hidden=form.reparameterization,
            layers=layers,
            heads=shape.heads(form.heads),
            head_width=shape.head_width,
        )
        stack.reset(generator)
        return stack

    @classmethod
    def label(cls, site: Site) -> str:
        """See `SharedDelta`."""
        return f"stack_{site}"

    def reset(self, generator: torch.Generator) -> None:
        """Draw all numbers from one generator."""
        with torch.no_grad():
            self.embedding.normal_(generator=generator)
            for layer in (self.middle, self.outer):
                bound = layer.in_features**-0.5
                layer.weight.uniform_(-bound, bound, generator=generator)
                layer.bias.uniform_(-bound, bound, generator=generator)

    def table(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys and values ``(N_kv, l, d_h)`` of one layer."""
        heads, head_width = self._heads
        hidden = torch.tanh(self.middle(self.embedding))  # (l, mid)
        size = 2 * heads * head_width
        rows = slice(layer * size, (layer + 1) * size)
        flat = torch.nn.functional.linear(hidden, self.outer.weight[rows], self.outer.bias[rows])
        keys, values = flat.view(-1, 2, heads, head_width).permute(1, 2, 0, 3)
        return keys, values


class StackLayer(FormDelta):
    """One layer's view of a `PrefixStack`; it has no parameters of its own."""

    _stack: tuple[PrefixStack]
    _layer: int

    def look_at(self, stack: PrefixStack, layer: int) -> None:
        """Keep the stack without registering it a second time."""
        self._stack, self._layer = (stack,), layer

    @property
    def shared(self) -> PrefixStack:
        """See `FormDelta`."""
        return self._stack[0]

    @property
    def layer(self) -> int:
        """See `FormDelta`."""
        return self._layer
