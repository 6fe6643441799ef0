"""Edits inside one attention module: prefixes, gates of log-sum-exps, and edits of the heads.

Shapes: `B` examples, `T` queries, `S` keys, `H` query heads, `N` key/value heads, `R` rows of a table.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from search_space.dimensions import Heads, Insertion, Port
from trial_runner.errors import AttachError
from trial_runner.packed.packed_deltas import Group, PackedPlan, Prefix, SlotRows
from trial_runner.packed.stacks import by_slots

_PER_HEAD = (Port.Q, Port.HEAD)
_READ_BY_PROJECTIONS = (Port.RES_IN, Port.X_ATTN, Port.CTX)


def capped(logits: Tensor, softcap: float | None) -> Tensor:
    """Bound logits to ``-softcap`` … ``softcap``."""
    return logits if softcap is None else softcap * torch.tanh(logits / softcap)


class HeadEdits:
    """Edits of one attention module that take place inside it.

    Args:
        plan: Function that returns the plan of the active deltas at the sublayer; None without any.
        values: Tensors that the sublayer's hooks captured, by port; those of the heads are added here.
        real: Function that returns the mask of tokens that are no padding, ``(K B, T)``; None for all.
    """

    def __init__(
        self,
        plan: Callable[[], PackedPlan | None],
        values: dict[Port, SlotRows],
        real: Callable[[], Tensor | None] = lambda: None,
    ) -> None:
        """Keep the functions; the plan is read anew at every forward pass."""
        self._plan = plan
        self._real = real
        self._values = values
        self._query: SlotRows | None = None
        self._scaling = 1.0
        self._weights: dict[Group, Tensor] = {}

    def slots(self) -> int:
        """Number of blocks of rows that may be edited differently: K, or 1 without an edit."""
        plan = self._plan()
        return 1 if plan is None else plan.slots

    @contextmanager
    def for_rows(self, rows: Tensor) -> Iterator[None]:
        """Edit the projections of non-token rows ``(K, P, D)`` within the context; those of tokens are restored."""
        plan = self._plan()
        of_tokens = dict(self._values)
        self._values.clear()
        if plan is not None:
            self._values.update(dict.fromkeys(_READ_BY_PROJECTIONS, SlotRows(rows, plan.slots)))
        try:
            yield
        finally:
            self._values.clear()
            self._values.update(of_tokens)

    def prefix(self) -> Prefix | None:
        """Return the rows to prepend to the module's own keys and values; None without any."""
        plan = self._plan()
        prefix = None if plan is None else plan.prefix()
        return prefix if plan is None or prefix is None else replace(prefix, share=self._share(plan))

    def _share(self, plan: PackedPlan) -> Tensor | None:
        """Return the factors of the rows of prefixes for each sample; 1 for those of other gates."""
        shares: dict[int, Tensor] = {}
        for group in plan.lse:
            if group.gate.is_prefix and group.gate.gate_input is not None:
                z = self._values[group.gate.gate_input].take(group.places)
                each = group.call("token_weights", z, self._real_tokens(group, plan.slots))
                shares |= dict(zip(group.places, each.unbind(0), strict=True))
        if not shares:
            return None
        one = torch.ones_like(next(iter(shares.values())))  # (B, 1, 1)
        return torch.cat([shares.get(place, one) for place in range(plan.slots)]).unsqueeze(-1)

    def _real_tokens(self, group: Group, slots: int) -> Tensor | None:
        """Return the mask of real tokens of a group's slots, ``(G, B, T, 1)``."""
        real = self._real()
        return None if real is None else SlotRows(real, slots).take(group.places).unsqueeze(-1)

    def needs_normaliser(self) -> bool:
        """Return whether `edit_heads` needs the log-sum-exp of the logits."""
        plan = self._plan()
        return plan is not None and any(not group.gate.is_prefix for group in plan.lse)

    def edit_heads(
        self, heads: Tensor, query: Tensor, normaliser: Tensor | None, scaling: float, softcap: float | None
    ) -> Tensor:
        """Apply the edits that write the head outputs.

        Args:
            heads: ``(B, T, H, d_h)``.
            query: Queries of the same shape, as they meet the keys: normalised and rotated if the backbone does so.
            normaliser: Log-sum-exp ``(B, T, H)`` of each query's logits, after all masks; None unless it was needed.
            scaling: Factor of the logits.
            softcap: Bound of the logits, applied before any mask; None for no bound.
        """
        plan = self._plan()
        if plan is None:
            return heads
        self._query, self._scaling = SlotRows(query, plan.slots), scaling
        if normaliser is not None:
            heads = self._weigh(plan, heads, normaliser, softcap)
        for one in (*plan.parallel.get(Port.HEAD, ()), *plan.sequential.get(Port.HEAD, ())):
            heads = self.compose(one, heads)
        if Port.HEAD in plan.reads:
            self._values[Port.HEAD] = SlotRows(heads, plan.slots)
        return heads

    def _weigh(self, plan: PackedPlan, heads: Tensor, normaliser: Tensor, softcap: float | None) -> Tensor:
        """Compute lambda of every edit with a gate of log-sum-exps; a convex inducer shrinks its heads by it."""
        query = self._query
        for group in plan.lse:
            if group.gate.is_prefix or query is None:
                continue
            mine = query.take(group.places)
            projected = _by_head(self._values[Port.Q].take(group.places), mine)
            own = capped(group.call("own_logits", mine, projected, self._scaling), softcap)  # (G, B, T, H)
            behind = SlotRows(normaliser, plan.slots).take(group.places)
            weight = torch.sigmoid(own - behind).unsqueeze(-1).to(heads.dtype)  # (G, B, T, H, 1)
            self._weights[group] = weight
            if group.edit.gate.is_convex:
                heads = heads * (1 - group.spread(weight))
        return heads

    def clear(self) -> None:
        """Release every tensor of the last forward pass."""
        self._values.clear()
        self._weights.clear()
        self._query = None

    def compose(self, groups: Sequence[Group], h: Tensor, own: Tensor | None = None) -> Tensor:
        """Apply the edits of a round to a tensor, ``(K B, ...)``.

        Args:
            groups: Groups of edits of its port.
            h: Tensor, ``(K B, ...)``.
            own: Input of edits that read their own port; None is ``h`` itself.
        """
        slots = groups[0].slots
        itself = SlotRows(h, slots)
        reads_own = itself if own is None else SlotRows(own, slots)
        rows = by_slots(h, slots)  # (K, B, ...)
        changed = rows
        for group in groups:
            given = self._arguments(group, itself, reads_own)
            if len(group.places) == slots:
                composed: Tensor = group.call("compose", rows, *given)
                return composed.flatten(0, 1)
            change: Tensor = group.call("delta", *given).to(h.dtype)
            shape = (len(group.places), *rows.shape[1:])
            if change.dim() < len(shape):
                change = change.reshape(len(group.places), *(1,) * (len(shape) - change.dim()), *change.shape[1:])
            change = change.expand(shape)
            # the first is out of place, and nobody else has seen what the others change
            changed = (
                rows.index_add(0, group.index, change)
                if changed is rows
                else changed.index_add_(0, group.index, change)
            )
        return changed.flatten(0, 1)

    def _arguments(
        self, group: Group, itself: SlotRows, reads_own: SlotRows
    ) -> tuple[Tensor | None, Tensor | None, float | None]:
        """Return the input of a group and the weight of its rows, ``(G, B, ...)``, and its scaling."""
        edit = group.edit
        real = self._real_tokens(group, group.slots) if group.gate.is_of_sample else None
        if edit.insertion is not Insertion.PARALLEL:
            # what is read may be normalised; what is multiplied is the port itself
            rows = itself if edit.gate.multiplies else reads_own
            return group.with_input_dropout(rows.take(group.places)), real, None
        is_query = edit.read is Port.Q and edit.heads is not Heads.SINGLE
        weight = real if group.gate.is_of_sample else self._weights.get(group)
        return group.with_input_dropout(self._read(group)), weight, self._scaling if is_query else None

    def _read(self, group: Group) -> Tensor:
        """Return the input of a group, ``(G, B, ...)``, split by heads if the form works per head.

        A table at the heads meets q as the base keys do, normalised and rotated; everything else reads it as projected.
        """
        edit = group.edit
        if edit.read is None:
            raise AttachError(f"{edit.form.name} at {edit.write} must read a tensor; got none.")
        is_table = group.is_table and edit.write is Port.HEAD and edit.read is Port.Q
        if is_table and self._query is not None:
            return self._query.take(group.places)
        value = self._values[edit.read].take(group.places)
        if edit.heads is Heads.SINGLE or edit.read not in _PER_HEAD or value.dim() == 5:
            return value
        if self._query is None:
            raise AttachError(f"{edit.read} of {edit.site} must be split by heads; the attention has not run.")
        return _by_head(value, self._query.tensor)


def _by_head(value: Tensor, query: Tensor) -> Tensor:
    """Reshape ``(..., H d_h)`` to ``(..., H, d_h)``."""
    return value.view(*value.shape[:-1], *query.shape[-2:])
