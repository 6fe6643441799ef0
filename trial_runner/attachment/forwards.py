"""Attention modules of transformers that call no attention function, and what they compute through ours."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from trial_runner.attachment.attention import attend
from trial_runner.attachment.disentangled import by_head, forward


def call_ours(module: nn.Module) -> None:
    """From now on a module that calls no attention function calls ours; one that does is left as it is."""
    ours = _FORWARDS.get(type(module).__name__)
    if ours is not None:
        module.forward = partial(ours, module)


def restore(module: nn.Module) -> None:
    """Leave a module as it was."""
    module.__dict__.pop("forward", None)


def _mpnet(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **others: Any,
) -> tuple[Tensor]:
    """See ``MPNetSelfAttention`` of transformers; the weights of attention are not given.

    Args:
        module: Of transformers.
        hidden_states: ``(B, T, D)``.
        attention_mask: ``(B, 1, T, T)``, True where a query may look; or additive; None where it may look anywhere.
        position_bias: ``(B, H, T, T)``, of relative positions, which every block adds to its logits.
        output_attentions: Without effect.
        others: Without effect.
    """
    heads = module.num_attention_heads
    query, key, value = (by_head(project(hidden_states), heads) for project in (module.q, module.k, module.v))
    dropout = module.dropout.p if module.training else 0.0
    seen, _ = attend(
        module, query, key, value, attention_mask, dropout=dropout, is_causal=False, position_bias=position_bias
    )
    return (module.o(seen.flatten(2)),)


_FORWARDS: Mapping[str, Callable[..., Any]] = {"DisentangledSelfAttention": forward, "MPNetSelfAttention": _mpnet}
