"""Forward functions for attention modules of transformers that call no attention function."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from trial_runner.attachment.attention import attend, tap_of
from trial_runner.attachment.head_edits import HeadEdits
from trial_runner.packed.dropout import active_dropout, at_zero_offset
from trial_runner.packed.stacks import by_slots


def _disentangled(  # noqa: PLR0913 - the signature is transformers'
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    output_attentions: bool = False,
    query_states: Tensor | None = None,
    relative_pos: Tensor | None = None,
    rel_embeddings: Tensor | None = None,
) -> tuple[Tensor, None]:
    """Replace the forward of ``DisentangledSelfAttention`` of transformers; returns no attention weights.

    Args:
        module: Module of transformers.
        hidden_states: ``(K B, T, D)``.
        attention_mask: ``(K B, 1, T, T)``, not 0 for visible keys.
        output_attentions: Ignored.
        query_states: Input of the queries; None means the hidden states.
        relative_pos: ``(1, T, T)``, distance of a query behind a key, in buckets.
        rel_embeddings: ``(P, D)``, or of each slot ``(K, P, D)``.
    """
    heads = module.num_attention_heads
    of_queries = hidden_states if query_states is None else query_states
    query, key, value = (
        _by_head(project(rows), heads)
        for project, rows in (
            (module.query_proj, of_queries),
            (module.key_proj, hidden_states),
            (module.value_proj, hidden_states),
        )
    )
    # as transformers rounds it: contents with contents, with positions, and the other way round
    scaling = 1 / float(np.sqrt(np.float32(3 * query.shape[-1])))
    queries, keys = _of_positions(module, rel_embeddings, tap_of(module))  # (K, H, P, d_h)
    bias = _bias(query, key, queries, keys, relative_pos, module.pos_ebd_size)
    seen, _ = attend(
        module,
        query,
        key,
        value,
        attention_mask.bool(),
        scaling=scaling,
        dropout=module.dropout.p if module.training else 0.0,
        is_causal=False,
        position_bias=bias * scaling,
    )
    return seen.flatten(2), None


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """Reshape ``(B, T, H d_h)`` to ``(B, H, T, d_h)``."""
    return rows.view(*rows.shape[:-1], heads, -1).transpose(1, 2)


def _of_positions(module: Any, table: Any, tap: HeadEdits | None) -> tuple[Tensor, Tensor]:
    """Project the relative positions to queries and keys ``(1 or K, H, P, d_h)``, by the projections of contents."""
    slot_dropout = active_dropout() if module.training else None
    slots = tap.slots() if tap is not None else 1
    if slot_dropout is not None:
        slots = slot_dropout.slots
    rows = table if table.dim() == 3 else table.expand(slots, -1, -1)
    rows = rows[:, : 2 * module.pos_ebd_size]
    # rows of positions are the same whatever stands before the tokens
    with nullcontext() if slot_dropout is None else at_zero_offset(slot_dropout):
        rows = module.pos_dropout(rows)
        with nullcontext() if tap is None else tap.for_rows(rows):
            projected = (module.query_proj(rows), module.key_proj(rows))
    queries, keys = (_by_head(one, module.num_attention_heads) for one in projected)
    return queries, keys


def _bias(query: Tensor, key: Tensor, queries: Tensor, keys: Tensor, distance: Any, reach: int) -> Tensor:
    """Return the logits between contents and positions, ``(K B, H, T, T)``, before scaling.

    Args:
        query: Queries of contents, ``(K B, H, T, d_h)``.
        key: Keys of contents.
        queries: Queries of positions, ``(1 or K, H, P, d_h)``.
        keys: Keys of positions.
        distance: ``(1, T, T)``.
        reach: Number of rows of positions to either side.
    """
    of_keys = (distance + reach).clamp(0, 2 * reach - 1).unsqueeze(0)  # (1, 1, T, T)
    of_queries = (reach - distance).clamp(0, 2 * reach - 1).unsqueeze(0)
    size = (*query.shape[:2], *distance.shape[-2:])
    content_to_position = _products(query, keys).gather(-1, of_keys.expand(size))
    position_to_content = _products(key, queries).gather(-1, of_queries.expand(size)).transpose(-1, -2)
    return content_to_position + position_to_content


def _products(contents: Tensor, positions: Tensor) -> Tensor:
    """Return the products ``(K B, H, T, P)`` of the rows of each slot with its positions."""
    rows = by_slots(contents, positions.shape[0])  # (K, B, H, T, d_h)
    return (rows @ positions.unsqueeze(1).transpose(-1, -2)).flatten(0, 1)


def replace_forward(module: nn.Module) -> None:
    """Replace the forward of a module that calls no attention function; others stay as they are."""
    ours = _FORWARDS.get(type(module).__name__)
    if ours is not None:
        module.forward = partial(ours, module)


def _mpnet(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **others: Any,
) -> tuple[Tensor]:
    """Replace the forward of ``MPNetSelfAttention`` of transformers; returns no attention weights.

    Args:
        module: Module of transformers.
        hidden_states: ``(B, T, D)``.
        attention_mask: ``(B, 1, T, T)``, True for visible keys; or additive; None without a mask.
        position_bias: ``(B, H, T, T)``, bias of relative positions, which every block adds to its logits.
        output_attentions: Ignored.
        others: Ignored.
    """
    heads = module.num_attention_heads
    query, key, value = (_by_head(project(hidden_states), heads) for project in (module.q, module.k, module.v))
    dropout = module.dropout.p if module.training else 0.0
    seen, _ = attend(
        module, query, key, value, attention_mask, dropout=dropout, is_causal=False, position_bias=position_bias
    )
    return (module.o(seen.flatten(2)),)


_FORWARDS: Mapping[str, Callable[..., Any]] = {"DisentangledSelfAttention": _disentangled, "MPNetSelfAttention": _mpnet}
