"""Activations that the backward pass computes again: a block keeps what it is given, not what it computes of it.

Gradient checkpointing (Chen et al. 2016) by blocks. When a block is computed again, the pass that it belongs to has
ended: its deltas are put on once more, and its dropout counts its calls from where the block began, so that both times
the numbers are the same.
"""

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from itertools import count
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from trial_runner.attachment.attach import Attachment
from trial_runner.packed.dropout import current, resumed


class Recomputation:
    """Whether the blocks of a backbone are computed again in backward passes.

    Args:
        attachment: The hooks on the backbone.
        blocks: All of it that is worth it; their hooks read nothing from outside of their block.
    """

    def __init__(self, attachment: Attachment, blocks: Iterable[nn.Module]) -> None:
        """Leave them as they are."""
        self._attachment = attachment
        self._blocks = tuple(blocks)
        self.is_on = False

    def switch(self, *, is_on: bool) -> None:
        """From now on, or no more."""
        if is_on == self.is_on:
            return
        self.is_on = is_on
        for block in self._blocks:
            if is_on:
                block.forward = partial(self._run, block.forward)
            else:
                del block.forward  # the one of its class is there again

    def _run(self, forward: Callable[..., Any], *positional: Any, **named: Any) -> Any:
        """A block; one without gradients, or within weights that are swapped for a pass, as it is."""
        active = self._attachment.active
        if not torch.is_grad_enabled() or active is None or active.whole is not None:
            return forward(*positional, **named)
        dropout = current()
        began_at = (0, 0) if dropout is None else dropout.place
        times = count()

        def compute(*positional: Any, **named: Any) -> Any:
            is_again = next(times) > 0
            masks = resumed(dropout, began_at) if is_again and dropout is not None else nullcontext()
            with self._attachment.resumed(active), masks:
                return forward(*positional, **named)

        return checkpoint(compute, *positional, use_reentrant=False, preserve_rng_state=False, **named)
