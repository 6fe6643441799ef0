"""What the edits of one attention module do inside it: prefixes, gates of log-sum-exps, and edits of the heads.

Shapes: `B` examples, `T` queries, `S` keys, `H` query heads, `N` key/value heads, `R` rows of a table.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.form import SoftmaxMemory
from search_space.gate import ConvexGate, ConvexInducerGate
from trial_runner.delta_set import SublayerPlan
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.errors import AttachError

__all__ = ["HeadEdits"]

_PER_HEAD = (Port.Q, Port.HEAD)


class HeadEdits:
    """See `trial_runner.attention.AttentionTap`.

    Args:
        plan: What the active delta set does at the sublayer; None for nothing.
        values: Tensors that the sublayer's hooks kept, by port; those of the heads are added here.
    """

    def __init__(self, plan: Callable[[], SublayerPlan | None], values: dict[Port, Tensor]) -> None:
        """Look at the plan at every forward pass anew."""
        self._plan = plan
        self._values = values
        self._query: Tensor | None = None
        self._scaling = 1.0
        self._weight: Tensor | None = None

    def prefix(self) -> tuple[Tensor, Tensor] | None:
        """See `AttentionTap`."""
        plan = self._plan()
        if plan is None or plan.lse is None or not isinstance(plan.lse.edit.gate, ConvexGate):
            return None
        return plan.lse.table()

    def needs_normaliser(self) -> bool:
        """See `AttentionTap`."""
        plan = self._plan()
        return plan is not None and plan.lse is not None and not isinstance(plan.lse.edit.gate, ConvexGate)

    def edit_heads(self, heads: Tensor, query: Tensor, normaliser: Tensor | None, scaling: float) -> Tensor:
        """See `AttentionTap`."""
        plan = self._plan()
        if plan is None:
            return heads
        self._query, self._scaling, self._weight = query, scaling, None
        if plan.lse is not None and normaliser is not None:
            own = plan.lse.own_logits(query, _by_head(self._values[Port.Q], query), scaling)
            self._weight = torch.sigmoid(own - normaliser).unsqueeze(-1).to(heads.dtype)  # (B, T, H, 1)
            if isinstance(plan.lse.edit.gate, ConvexInducerGate):
                heads = heads * (1 - self._weight)
        for delta in plan.parallel.get(Port.HEAD, ()):
            heads = self.compose(plan, delta, heads)
        for delta in plan.sequential.get(Port.HEAD, ()):
            heads = delta.compose(heads, heads)
        if Port.HEAD in plan.reads:
            self._values[Port.HEAD] = heads
        return heads

    def clear(self) -> None:
        """Let go of every tensor of the last forward pass."""
        self._values.clear()
        self._query = self._weight = None

    def compose(self, plan: SublayerPlan, delta: PortDelta, h: Tensor) -> Tensor:
        """A tensor with an edit in it that reads another one."""
        is_query = delta.edit.read is Port.Q and delta.edit.heads is not Heads.SINGLE
        return delta.compose(
            h,
            self._read(delta.edit),
            weight=self._weight if delta is plan.lse else None,
            scaling=self._scaling if is_query else None,
        )

    def _read(self, edit: Edit) -> Tensor:
        """What an edit reads, split by heads where the form works per head.

        A table at the heads meets q as the base keys do, normalised and rotated; everything else reads it as projected.
        """
        if edit.read is None:
            raise AttachError(f"{edit.form.name} at {edit.write} must read a tensor; got none.")
        is_table = isinstance(edit.form, SoftmaxMemory) and edit.write is Port.HEAD and edit.read is Port.Q
        if is_table and self._query is not None:
            return self._query
        value = self._values[edit.read]
        if edit.heads is Heads.SINGLE or edit.read not in _PER_HEAD or value.dim() == 4:
            return value
        if self._query is None:
            raise AttachError(f"{edit.read} of {edit.site} must be split by heads; the attention has not run.")
        return _by_head(value, self._query)


def _by_head(value: Tensor, query: Tensor) -> Tensor:
    """``(B, T, H d_h)`` as ``(B, T, H, d_h)``."""
    return value.view(*value.shape[:-1], *query.shape[-2:])
