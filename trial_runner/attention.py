"""The one attention function of all backbones: what `transformers` computes, plus the edits inside attention.

It is registered with its mask function under `ATTENTION`; a backbone that is loaded with that implementation calls it
from every attention module. Prefixes live here, not in ``past_key_values``, so positions do not shift.
"""

from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

__all__ = ["ATTENTION", "AttentionTap", "attend", "register_attention", "tap_attention", "untap_attention"]

ATTENTION = "deltaspace"


class AttentionTap(Protocol):
    """What the edits of one attention module have to say inside it."""

    def prefix(self) -> tuple[Tensor, Tensor] | None:
        """Keys and values ``(N_kv, R, d_h)`` to put before the module's own; None without a prefix."""
        ...

    def edit_heads(self, heads: Tensor, query: Tensor) -> Tensor:
        """The head outputs ``(B, T, H, d_h)`` with the edits that write them; ``query`` has the same shape."""
        ...


_taps: WeakKeyDictionary[nn.Module, AttentionTap] = WeakKeyDictionary()


def tap_attention(module: nn.Module, tap: AttentionTap) -> None:
    """Let a tap take part in the attention of a module."""
    _taps[module] = tap


def untap_attention(module: nn.Module) -> None:
    """Leave the attention of a module as it was."""
    _taps.pop(module, None)


def register_attention() -> None:
    """Make the implementation `ATTENTION` known to `transformers`; calling it again changes nothing."""
    ALL_ATTENTION_FUNCTIONS.register(ATTENTION, attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register(ATTENTION, sdpa_mask)


def attend(  # noqa: PLR0913 - the signature is transformers'
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    is_causal: bool | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention of one module, with the edits that live inside it.

    Args:
        module: The calling module; its edits are found by it.
        query: ``(B, H, T, d_h)``.
        key: ``(B, N_kv, S, d_h)``.
        value: ``(B, N_kv, S, d_h)``.
        attention_mask: ``(B, 1, T, S)``, True where a query may look; or additive; None where it may look anywhere.
        scaling: Factor of the logits; None means 1/sqrt(d_h).
        dropout: Probability that a weight is dropped.
        is_causal: Whether a missing mask means a causal one; None asks the module.

    Returns:
        ``(B, T, H, d_h)``, and no weights.
    """
    tap = _taps.get(module)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
    mask = _causal_mask(query, key) if attention_mask is None and causal and query.shape[2] > 1 else attention_mask
    prefix = tap.prefix() if tap is not None else None
    if prefix is not None:
        key, value, mask = _with_prefix(prefix, key, value, mask)
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    kernel = _fused if query.is_cuda else _plain
    heads = kernel(query, key, value, mask, scaling, dropout).transpose(1, 2)  # (B, T, H, d_h)
    if tap is not None:
        heads = tap.edit_heads(heads, query.transpose(1, 2))
    return heads.contiguous(), None


Kernel = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, float], Tensor]


def _with_prefix(
    prefix: tuple[Tensor, Tensor], key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Prefix rows before the real ones; every query sees them, under any mask."""
    batch, length = key.shape[0], prefix[0].shape[-2]
    keys, values = (part.to(key.dtype).unsqueeze(0).expand(batch, -1, -1, -1) for part in prefix)
    if mask is not None:
        visible = (
            torch.ones((), dtype=mask.dtype, device=mask.device) if mask.dtype == torch.bool else mask.new_zeros(())
        )
        mask = torch.cat([visible.expand(*mask.shape[:-1], length), mask], dim=-1)
    return torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2), mask


def _causal_mask(query: Tensor, key: Tensor) -> Tensor:
    queries, keys = query.shape[2], key.shape[2]
    full = torch.ones(queries, keys, dtype=torch.bool, device=query.device)
    return full.tril(keys - queries)[None, None]


def _plain(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, dropout: float) -> Tensor:
    """Products and a softmax: the faster way to train on a CPU."""
    logits = query @ key.transpose(-1, -2) * scaling
    wide = torch.promote_types(logits.dtype, torch.float32)
    if mask is not None and mask.dtype == torch.bool:
        logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    elif mask is not None:
        logits = logits + mask
    weights = torch.softmax(logits, dim=-1, dtype=wide).to(query.dtype)
    if dropout:
        weights = torch.nn.functional.dropout(weights, p=dropout, training=True)
    return weights @ value


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float, dropout: float) -> Tensor:
    """PyTorch's fused kernels: the faster way on a GPU."""
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, scale=scaling
    )
