"""Tensors that pass through the modules of a model in one pass, by which ports are identified.

Shapes: `B` examples, `T` tokens, `D` width, `H` heads.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, sdpa_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from trial_runner.attachment.attention import attend

TRACED = "deltaspace-traced"
ROWS, TOKENS = 2, 5

Attention = tuple[Tensor, Tensor, Tensor, Tensor]
_given: ContextVar[list[tuple[nn.Module, Attention]] | None] = ContextVar("given_to_attention", default=None)


def register_tracing() -> None:
    """Register the implementation `TRACED` with transformers."""
    ALL_ATTENTION_FUNCTIONS.register(TRACED, _recording)
    ALL_MASK_ATTENTION_FUNCTIONS.register(TRACED, sdpa_mask)


def _recording(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **named: Any) -> Any:
    heads, weights = attend(module, query, key, value, *rest, **named)
    given = _given.get()
    if given is not None:
        given.append((module, (query, key, value, heads)))
    return heads, weights


@dataclass(eq=False)
class Trace:
    """Record of a pass of a model.

    Attributes:
        model: Model with random weights in float64.
        seen: First input and output of every called module at its first call, by path.
        attention: Queries, keys, values, and heads ``(B, T, H, d_h)`` of every module that calls the attention
            function,
            by path.
        outputs: Last hidden states.
    """

    model: nn.Module
    seen: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict)
    attention: dict[str, Attention] = field(default_factory=dict)
    outputs: Tensor = field(default_factory=lambda: torch.empty(0))


def traced(model: nn.Module) -> Trace:
    """Run a model that was built with the implementation `TRACED` on random tokens."""
    found = Trace(model)
    paths = {module: path for path, module in model.named_modules()}

    def note(module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        given = next((one for one in (*arguments, *named.values()) if isinstance(one, Tensor)), None)
        made = next((one for one in output if isinstance(one, Tensor)), None) if isinstance(output, tuple) else output
        if given is not None and isinstance(made, Tensor):
            found.seen.setdefault(paths[module], (given, made))

    handles = [module.register_forward_hook(note, with_kwargs=True) for module in paths]
    given: list[tuple[nn.Module, Attention]] = []
    before = _given.set(given)
    try:
        with torch.no_grad():
            found.outputs = model(input_ids=tokens()).last_hidden_state
        for module, tensors in given:
            found.attention.setdefault(paths[module], tensors)
    finally:
        _given.reset(before)
        for handle in handles:
            handle.remove()
    return found


def tokens() -> Tensor:
    """Return some rows of tokens that are in the vocabulary of every small copy."""
    return torch.randint(6, 60, (ROWS, TOKENS), generator=torch.Generator().manual_seed(0))


def is_same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal, up to a norm in float32."""
    return one.shape == other.shape and bool((one - other).abs().max() <= 1e-5 * (1 + other.abs().max()))
