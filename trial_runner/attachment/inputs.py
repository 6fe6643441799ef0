"""What a base model is called with for a batch of texts."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from search_space.dimensions import StackKind
from trial_runner.tasks import Batch


def on_device(values: NDArray[Any], device: torch.device) -> Tensor:
    """Numbers of the host on a device, without waiting for it: a GPU copies only from pinned memory by itself."""
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


REAL_TOKENS = "real_tokens"
"""Name of a mask that a model is not called with: it would hide nothing that a causal one does not."""


def is_padded_right(mask: NDArray[np.bool_]) -> bool:
    """Whether padding comes after all tokens of its row, where no token of a decoder sees it.

    Args:
        mask: Of real tokens, ``(B, T)``.
    """
    return bool((mask[:, 1:] <= mask[:, :-1]).all() and mask[:, :1].all())


def model_inputs(
    batch: Batch, kind: StackKind, device: torch.device, *, decoder_start_token_id: int = 0
) -> dict[str, Tensor]:
    """Arguments of a base model whose output has one row for each token of a batch.

    The decoder of an encoder-decoder gets the same text, one token later, behind a start token (Lewis et al. 2020).

    Args:
        kind: Which stacks the model has.
        device: Where the tensors are wanted.
        decoder_start_token_id: What the decoder's text begins with.
    """
    inputs = {
        "input_ids": on_device(batch.input_ids, device),
        "attention_mask": on_device(batch.attention_mask, device),
    }
    if batch.token_type_ids is not None and kind is StackKind.ENCODER:
        inputs["token_type_ids"] = on_device(batch.token_type_ids, device)
    if kind is StackKind.ENCODER_DECODER:
        later = np.roll(batch.input_ids, 1, axis=1)  # (B, T)
        later[:, :1] = decoder_start_token_id
        inputs["decoder_input_ids"] = on_device(later, device)
        inputs["decoder_attention_mask"] = inputs["attention_mask"]
    return inputs
