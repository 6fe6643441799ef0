"""Prompts of several slots before the input of one pass; shorter ones are padded in front with masked rows.

Shapes: `K` slots of the pass, `L` rows of the longest prompt.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from trial_runner.deltas.prompt import PromptDelta
from trial_runner.packed.stacks import ModuleStack, last_rows


class PackedPrompt:
    """Prompts of all slots.

    Args:
        prompts: Prompt of each slot; None for a slot without one.
        copies_all: Whether to copy a single plain table, too.

    Attributes:
        lengths: Number of rows of each slot's prompt.
        length: Number of rows L of the longest prompt.
        stacks: Trained modules.
        shifts: Offset of each slot's first position from the first row, ``(K,)``.
        visible: Mask of the prompts' rows, ``(K, L)``.
    """

    def __init__(self, prompts: Sequence[PromptDelta | None], *, copies_all: bool = False) -> None:
        """Stack plain tables; prompts from encoders are computed separately."""
        self.lengths = tuple(0 if prompt is None else prompt.length for prompt in prompts)
        self.length = max(self.lengths)
        plain = [(place, one) for place, one in enumerate(prompts) if one is not None and one.encoder is None]
        encoded = [(place, one) for place, one in enumerate(prompts) if one is not None and one.encoder is not None]
        self.stacks = [ModuleStack([one], [place]) for place, one in encoded]
        if plain:
            places, modules = zip(*plain, strict=True)
            self.stacks.append(ModuleStack(modules, places, copies_one=copies_all))
        device = next(iter(self.stacks[0].parameters.values())).device
        self.shifts = self.length - torch.tensor(self.lengths, device=device)
        self.visible = last_rows(self.lengths, self.length, device)

    def rows(self) -> Tensor:
        """Return ``(K, L, D)``; each prompt's rows come last."""
        found: dict[int, Tensor] = {}
        for stack in self.stacks:
            rows = stack.call(PromptDelta.rows)  # (G, l, D)
            rows = nn.functional.pad(rows, (0, 0, self.length - rows.shape[1], 0))
            found |= dict(zip(stack.places, rows.unbind(0), strict=True))
        width = next(iter(found.values())).shape[-1]
        nothing = next(iter(found.values())).new_zeros(self.length, width)
        return torch.stack([found.get(place, nothing) for place in range(len(self.lengths))])

    @property
    def is_even(self) -> bool:
        """Whether all prompts have one length."""
        return min(self.lengths) == self.length
