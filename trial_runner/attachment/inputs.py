"""Inputs of a base model for a batch of texts."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from search_space.dimensions import StackKind
from trial_runner.backbones.locate import padding_token
from trial_runner.tasks import Batch

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


def on_device(values: NDArray[Any], device: torch.device) -> Tensor:
    """Copy an array to a device without waiting for it; a GPU copies asynchronously only from pinned memory."""
    tensor = torch.from_numpy(values)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


REAL_TOKENS = "real_tokens"
"""Name of a mask that is not passed to the model: a causal mask hides the same tokens."""


def is_padded_right(mask: NDArray[np.bool_]) -> bool:
    """Return whether padding comes after all tokens of its row, where it is hidden from the tokens of a decoder.

    Args:
        mask: Mask of real tokens, ``(B, T)``.
    """
    return bool((mask[:, 1:] <= mask[:, :-1]).all() and mask[:, :1].all())


def start_token(config: "PreTrainedConfig") -> int:
    """Return the first token of the decoder in an encoder-decoder."""
    start = getattr(config, "decoder_start_token_id", None)
    return padding_token(config.to_dict()) if start is None else int(start)


def model_inputs(batch: Batch, kind: StackKind, device: torch.device, config: "PreTrainedConfig") -> dict[str, Tensor]:
    """Return the arguments of a base model whose output has one row for each token of a batch.

    The decoder of an encoder-decoder gets the same text, one token later, behind a start token (Lewis et al. 2020).

    Args:
        batch: Batch of texts.
        kind: Kind of the model's stacks.
        device: Device of the tensors.
        config: Config of the model.
    """
    inputs = {
        "input_ids": on_device(batch.input_ids, device),
        "attention_mask": on_device(batch.attention_mask, device),
    }
    if batch.token_type_ids is not None and kind is StackKind.ENCODER:
        inputs["token_type_ids"] = on_device(batch.token_type_ids, device)
    if kind is StackKind.ENCODER_DECODER:
        later = np.roll(batch.input_ids, 1, axis=1)  # (B, T)
        later[:, :1] = start_token(config)
        inputs["decoder_input_ids"] = on_device(later, device)
        inputs["decoder_attention_mask"] = inputs["attention_mask"]
    return inputs
