"""Frozen backbone as packs use it: its device and precision, and a pass with deltas."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from search_space.dimensions import StackKind
from trial_runner.attachment.attach import Attachment
from trial_runner.attachment.inputs import REAL_TOKENS, is_padded_right, model_inputs
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.errors import AttachError
from trial_runner.packed.dropout import active_dropout, dropping
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.packed.stacks import ModuleStack
from trial_runner.tasks import Batch

CACHED_BYTES = 8 << 20
"""Bytes of the widest activation of a pass that a CPU's cache holds; beyond it every product waits for memory."""
_EVALUATED_AT_LEAST = 8
"""Smallest number of evaluated examples in a pass on a CPU, for any cache."""


class Recomputation:
    """Switch of activation checkpointing for the blocks of a backbone.

    Args:
        attachment: Hooks on the backbone.
        blocks: Blocks worth recomputing; their hooks read nothing from outside of their block.
    """

    def __init__(self, attachment: Attachment, blocks: Iterable[nn.Module]) -> None:
        """Start with checkpointing off."""
        self._attachment = attachment
        self._blocks = tuple(blocks)
        self.is_on = False

    def switch(self, *, is_on: bool) -> None:
        """Turn checkpointing on or off."""
        if is_on == self.is_on:
            return
        self.is_on = is_on
        for block in self._blocks:
            if is_on:
                block.forward = partial(self._run, block.forward)
            else:
                del block.forward  # the one of its class is there again

    def _run(self, forward: Callable[..., Any], *positional: Any, **named: Any) -> Any:
        """Run a block with checkpointing; directly without gradients, or if weights are swapped for the pass."""
        active = self._attachment.active
        if not torch.is_grad_enabled() or active is None or active.whole is not None:
            return forward(*positional, **named)
        dropout = active_dropout()
        began_at = (0, 0) if dropout is None else dropout.place
        times = count()

        def compute(*positional: Any, **named: Any) -> Any:
            is_again = next(times) > 0
            masks = dropping(dropout, began_at) if is_again and dropout is not None else nullcontext()
            with self._attachment.resumed(active), masks:
                return forward(*positional, **named)

        return checkpoint(compute, *positional, use_reentrant=False, preserve_rng_state=False, **named)


def default_device() -> torch.device:
    """Return the accelerator that PyTorch finds, else the CPU; ranks of a surrounding job change nothing."""
    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Device and precision of a backbone's computations.

    Attributes:
        device: Device of its tensors.
        dtype: Type of deltas, heads and optimizers.
        autocast: Factory of a context with the precision of products.
        stands_for_gpu: Whether a GPU is planned for without one being present.
    """

    device: torch.device
    dtype: torch.dtype
    autocast: Callable[[], AbstractContextManager[Any]]
    stands_for_gpu: bool = False

    @property
    def is_gpu(self) -> bool:
        """Whether computations are as on a GPU."""
        return self.stands_for_gpu or self.device.type == "cuda"

    @property
    def product_bytes(self) -> int:
        """Bytes of a number that the backbone's products compute."""
        kind = self.device.type
        with self.autocast():
            dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else self.dtype
        return dtype.itemsize


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """Size of a pass of an evaluation.

    Attributes:
        examples: Largest number of examples of a slot; smaller once memory ran out.
        rows: Largest number of rows of all slots together.
    """

    examples: int = 128
    rows: int = 1024

    def halve(self) -> bool:
        """Halve the size; return False if it is one example of a slot already."""
        if self.examples == 1:
            return False
        self.examples //= 2
        self.rows = max(1, self.rows // 2)
        return True


@dataclass(slots=True, kw_only=True)
class MicroBatch:
    """Size of a pass of a training step.

    Attributes:
        examples: Largest number of examples of each slot; None for all of them.
    """

    examples: int | None = None

    def starts(self, count: int) -> range:
        """Return the begins of the parts of so many examples; the step of the range is the size of a part."""
        return range(0, count, min(count, self.examples or count))

    def halve(self, count: int) -> bool:
        """Halve the size of parts of so many examples; return False if it is one already."""
        now = min(count, self.examples or count)
        self.examples = -(-now // 2)
        return now > 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenModel(Backbone):
    """Backbone with hooks on its ports.

    Attributes:
        device: Device and precision of its computations.
        evaluation: Size of a pass without gradients.
        micro_batch: Size of a pass with gradients.
        recomputation: Activation checkpointing of its blocks.
        is_sharded: Whether only a part of its blocks is here between passes.
    """

    attachment: Attachment
    device: Device
    recomputation: Recomputation
    is_sharded: bool = False
    evaluation: Evaluation = field(default_factory=Evaluation)
    micro_batch: MicroBatch = field(default_factory=MicroBatch)

    @classmethod
    def of(cls, backbone: Backbone, device: Device, *, is_sharded: bool = False) -> "FrozenModel":
        """Attach hooks to a backbone that is on its device."""
        own = {field.name: getattr(backbone, field.name) for field in fields(backbone)}
        attachment = Attachment(backbone.model, backbone.family, backbone.shape)
        recomputation = Recomputation(attachment, attachment.blocks())
        return cls(**own, attachment=attachment, device=device, recomputation=recomputation, is_sharded=is_sharded)

    @property
    def has_dropout(self) -> bool:
        """Whether passes in training mode have dropout."""
        config = self.model.config.to_dict()  # type: ignore[union-attr,operator]
        shares = [value for key, value in config.items() if "drop" in key and isinstance(value, float)]
        return any(share > 0 for share in shares)

    def check_prompt(self, deltas: DeltaSet, tokens: int) -> None:
        """Refuse a prompt that leaves too few positions for the longest row, or is outside of its last window.

        In generation the padding lies between the prompt and the text, and attention windows count it.

        Args:
            deltas: Deltas with or without a prompt.
            tokens: Number of tokens of the longest row.

        Raises:
            AttachError: If the backbone is a decoder, where prompts take positions, and has too few or shorter windows.
        """
        prompt, window = deltas.prompt, getattr(self.model.config, "sliding_window", None)
        if prompt is None or self.shape.kind is not StackKind.DECODER:
            return
        for limit, of_what in ((self.position_limit_tokens, "positions"), (window, "windows")):
            if limit is not None and prompt.length + tokens > limit:
                raise AttachError(
                    f"a prompt and the longest text must be at most {limit} tokens together, the {of_what} of the "
                    f"backbone; got {prompt.length} and {tokens}. Cut the texts by max_tokens."
                )

    def widest_bytes(self, examples: int, tokens: int) -> int:
        """Return the bytes of the widest activation of a layer for so many examples on a CPU; 0 on other devices."""
        if self.device.is_gpu or self.device.device.type != "cpu":
            return 0
        return examples * tokens * self.shape.ffn_width * self.device.product_bytes

    def evaluated_together(self, slots: int, tokens: int) -> int:
        """Return the number of examples of an evaluation batch that all slots share.

        Args:
            slots: K.
            tokens: Number of tokens of an example.
        """
        most = max(1, min(self.evaluation.examples, self.evaluation.rows // slots))
        of_one = self.widest_bytes(slots, tokens)
        return min(most, max(_EVALUATED_AT_LEAST, most if of_one == 0 else CACHED_BYTES // of_one))

    def hidden(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Compute the last hidden states of the base model, ``(B, T, D)``, without a cache of keys and values."""
        no_cache = {} if self.shape.kind is StackKind.ENCODER else {"use_cache": False}
        given = {name: tensor for name, tensor in inputs.items() if name != REAL_TOKENS}
        hidden: Tensor = self.model(**given, **no_cache).last_hidden_state
        return hidden

    def needs_mask(self, mask: NDArray[np.bool_]) -> bool:
        """Return whether a mask of real tokens ``(B, T)`` hides tokens that would be visible without it."""
        return self.shape.kind is not StackKind.DECODER or not is_padded_right(mask)

    def inputs(self, batch: Batch, *, copies: int = 1) -> dict[str, Tensor]:
        """Return the inputs of the base model, with the whole batch repeated ``copies`` times.

        A mask that hides nothing is left out: a GPU's fastest attention takes none, and to look at the mask would wait
        for
        the device. Tokens of a decoder see no padding on their right; then the mask of real tokens is a separate entry.
        """
        inputs = model_inputs(batch, self.shape.kind, self.device.device, self.model.config)
        if self.shape.kind is not StackKind.ENCODER_DECODER and batch.attention_mask.all():
            del inputs["attention_mask"]
        elif not self.needs_mask(batch.attention_mask):
            inputs[REAL_TOKENS] = inputs.pop("attention_mask")
        return {name: tensor.repeat(copies, 1) for name, tensor in inputs.items()} if copies > 1 else inputs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pass:
    """Frozen model with the deltas and heads of K slots, computed together.

    Attributes:
        slots: K.
    """

    frozen: FrozenModel
    deltas: PackedDeltas
    heads: ModuleStack
    slots: int

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Compute with the deltas, in the device's precision, within the context."""
        with self.frozen.attachment.using(self.deltas), self.frozen.device.autocast():
            yield
