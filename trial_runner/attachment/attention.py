"""Attention function of all backbones: equal to that of `transformers`, with the edits inside attention.

It is registered with its mask function under `ATTENTION`; a backbone that is loaded with that implementation calls it
from every attention module. Prefixes live here, not in ``past_key_values``, so positions do not shift.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from trial_runner.attachment.head_edits import HeadEdits, capped
from trial_runner.errors import AttachError
from trial_runner.packed.dropout import active_dropout
from trial_runner.packed.kernels import has_gpu_kernels
from trial_runner.packed.packed_deltas import Prefix
from trial_runner.packed.stacks import for_examples

ATTENTION = "deltaspace"
_HALVES = (torch.bfloat16, torch.float16)

_WITHOUT_EFFECT = frozenset(
    {
        "sliding_window",  # the mask holds it, and a mask that is left away hides nothing of it
        "position_ids",
        "cache_position",
        "use_cache",
        "deterministic",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "logits_to_keep",
        "num_items_in_batch",
        "return_dict",
    }
)
"""Keywords of attention functions without effect on the results here."""


_taps: WeakKeyDictionary[nn.Module, ref[HeadEdits]] = WeakKeyDictionary()
"""Edits by module, as weak references: a tap refers to its model; the hooks of the model keep it alive."""


def tap_attention(module: nn.Module, tap: HeadEdits) -> None:
    """Apply edits in the attention of a module for as long as the tap is referenced."""
    _taps[module] = ref(tap)


def tap_of(module: nn.Module) -> HeadEdits | None:
    """Return the edits in the attention of a module; None without any."""
    found = _taps.get(module)
    return None if found is None else found()


def untap_attention(module: nn.Module) -> None:
    """Remove the edits from the attention of a module."""
    _taps.pop(module, None)


def register_attention() -> None:
    """Register the implementation `ATTENTION` with `transformers`; idempotent."""
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)


def check_keywords(given: Mapping[str, object]) -> None:
    """Refuse keywords that would change attention and are not implemented here; None and False pass.

    Args:
        given: Keywords of a model's call of an attention function, beyond those of `attend`.

    Raises:
        AttachError: If there is another one; names it.
    """
    for name, value in given.items():
        if value is not None and value is not False and name not in _WITHOUT_EFFECT:
            raise AttachError(
                f"attention must be what can be edited: masks, biases, soft-capping and windows; got {name}. "
                "Use another backbone."
            )


def attend(  # noqa: PLR0913 - the signature is transformers'
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    **others: object,
) -> tuple[Tensor, None]:
    """Compute the attention of one module, with the edits inside it.

    Args:
        module: Calling module, by which its edits are found.
        query: ``(B, H, T, d_h)``.
        key: ``(B, N_kv, S, d_h)``.
        value: ``(B, N_kv, S, d_h)``.
        attention_mask: ``(B, 1, T, S)``, True for visible keys; or additive; None without a mask.
        scaling: Factor of the logits; None means 1/sqrt(d_h).
        dropout: Probability that a weight is dropped.
        is_causal: Whether a missing mask means a causal one; None takes the attribute of the module.
        position_bias: ``(1 or B, H, T, S)``, added to the logits of the module's own keys (T5); None without one.
        softcap: Bound c of ``c tanh(logits / c)``, applied before any mask (Gemma 2); None for no bound.
        others: Further keywords of models; see `check_keywords`.

    Returns:
        ``(B, T, H, d_h)``, and no weights.

    Raises:
        AttachError: If a keyword is not implemented here, such as sinks.
    """
    check_keywords(others)
    tap = tap_of(module)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    is_causal = attention_mask is None and causal and query.shape[2] > 1
    prefix = tap.prefix() if tap is not None else None
    needs_normaliser = tap is not None and tap.needs_normaliser()
    draws_own = bool(dropout) and active_dropout() is not None
    is_fused = has_gpu_kernels(query) and softcap is None and not draws_own and not needs_normaliser
    # fused kernels know a causal mask by its name, unless something else is in it
    is_named = is_causal and is_fused and position_bias is None and (prefix is None or prefix.visible is None)
    mask = _causal_mask(query, key) if is_causal and not is_named else attention_mask
    mask = mask if position_bias is None else _with_bias(position_bias, mask)
    before = 0 if prefix is None else prefix.keys.shape[-2]
    if prefix is not None:
        key, value, mask = _with_prefix(prefix, key, value, mask)
    normaliser = None
    if needs_normaliser:
        logits = _logits(query, key, mask, scaling, softcap)
        normaliser = torch.logsumexp(logits.to(_wide(logits)), dim=-1).transpose(1, 2)  # (B, T, H)
        heads = _weigh(logits, value, dropout, before)
    elif is_fused:
        heads = _fused(query, key, value, mask, scaling, dropout, is_causal=is_named)
    else:
        heads = _weigh(_logits(query, key, mask, scaling, softcap), value, dropout, before)
    heads = heads.transpose(1, 2)  # (B, T, H, d_h)
    if tap is not None:
        heads = tap.edit_heads(heads, query.transpose(1, 2), normaliser, scaling, softcap)
    return heads.contiguous(), None


def _with_prefix(
    prefix: Prefix, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Prepend prefix rows; every query of a block sees those of its block, under any mask."""
    length = prefix.keys.shape[-2]
    keys, values = (for_examples(part.to(key.dtype), key.shape[0]) for part in (prefix.keys, prefix.values))
    if prefix.share is not None:
        keys, values = keys * prefix.share.to(keys.dtype), values * prefix.share.to(values.dtype)
    if mask is None and prefix.visible is not None:
        mask = torch.ones((1, 1, 1, key.shape[2]), dtype=torch.bool, device=key.device)
    if mask is not None:
        mask = _widened(mask, prefix.visible, length, key.shape[0])
    return torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2), mask


def _widened(mask: Tensor, visible: Tensor | None, length: int, examples: int) -> Tensor:
    """Return a mask ``(1 or K B, 1 or H, 1 or T, S)`` with columns for the rows of prefixes prepended."""
    is_bool = mask.dtype == torch.bool
    if visible is None:
        shown = torch.ones((), dtype=mask.dtype, device=mask.device) if is_bool else mask.new_zeros(())
        return torch.cat([shown.expand(*mask.shape[:-1], length), mask], dim=-1)
    rows = for_examples(visible, examples)[:, None, None, :]  # (K B, 1, 1, R)
    if not is_bool:
        rows = mask.new_zeros(rows.shape).masked_fill(~rows, torch.finfo(mask.dtype).min)
    mask = mask.expand(rows.shape[0], -1, -1, -1)
    return torch.cat([rows.expand(*mask.shape[:-1], length), mask], dim=-1)


def _causal_mask(query: Tensor, key: Tensor) -> Tensor:
    queries, keys = query.shape[2], key.shape[2]
    full = torch.ones(queries, keys, dtype=torch.bool, device=query.device)
    return full.tril(keys - queries)[None, None]


def _with_bias(bias: Tensor, mask: Tensor | None) -> Tensor:
    """Return the sum of a bias of the positions and a mask, as one additive mask."""
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, torch.finfo(bias.dtype).min)
    return bias + mask


def _wide(logits: Tensor) -> torch.dtype:
    return torch.promote_types(logits.dtype, torch.float32)


def _logits(query: Tensor, key: Tensor, mask: Tensor | None, scaling: float, softcap: float | None) -> Tensor:
    """Compute the masked logits ``(B, H, T, S)``."""
    logits = capped(_grouped(query, key.transpose(-1, -2)) * scaling, softcap)
    if mask is None:
        return logits
    if mask.dtype == torch.bool:
        return logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    return logits + mask


def _weigh(logits: Tensor, value: Tensor, dropout: float, before: int) -> Tensor:
    """Compute softmax and product ``(B, H, T, d_h)``: the faster way to train on a CPU.

    Args:
        logits: ``(B, H, T, S)``.
        value: ``(B, H, S, d_h)``.
        dropout: Probability that a weight is dropped.
        before: Number of columns that are rows of prefixes.
    """
    weights = torch.softmax(logits, dim=-1, dtype=_wide(logits)).to(value.dtype)
    own = active_dropout()
    if dropout and own is not None:
        weights = own.drop(weights, dropout, before, own.rows_before)
    elif dropout:
        weights = torch.nn.functional.dropout(weights, p=dropout, training=True)
    return _grouped(weights, value)


def _grouped(heads: Tensor, shared: Tensor) -> Tensor:
    """Return the products ``(B, H, T, n)`` of heads, ``(B, H, T, m)``, with their groups', ``(B, N_kv, m, n)``.

    Nothing is repeated: the rows of the heads of a group are adjacent.
    """
    examples, count, rows, width = heads.shape
    groups = shared.shape[1]
    if groups == count:
        return heads @ shared
    return (heads.reshape(examples, groups, count // groups * rows, width) @ shared).view(examples, count, rows, -1)


def _fused(  # noqa: PLR0913 - the arguments are those of PyTorch's
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, dropout: float, *, is_causal: bool
) -> Tensor:
    """Compute attention with PyTorch's fused kernels: the faster way on a GPU.

    Args:
        query: ``(B, H, T, d_h)``.
        key: ``(B, N_kv, S, d_h)``.
        value: ``(B, N_kv, S, d_h)``.
        mask: Boolean or additive mask; None without one.
        scaling: Factor of the logits.
        dropout: Probability that a weight is dropped.
        is_causal: Whether a query sees its own and earlier positions, prefixes included; there is no mask then.
    """
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and query.dtype not in _HALVES:  # those of 32 bits take as many keys as queries
        key, value, groups = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1), 1
    if is_causal and query.shape[2] != key.shape[2]:  # a GPU's kernels know that, too, by its name
        lower_right: Any = causal_lower_right(query.shape[2], key.shape[2])
        mask, is_causal = lower_right if query.is_cuda else _causal_mask(query, key), False
    elif mask is not None and mask.dtype == torch.bool:
        # a query that sees nothing, as in the padding, must not become NaN
        mask = query.new_zeros(mask.shape).masked_fill(~mask, torch.finfo(query.dtype).min)
    return torch.nn.functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout,
        is_causal=is_causal,
        scale=scaling,
        enable_gqa=groups > 1,
    )
