"""What a base model is called with for a batch of texts."""

import numpy as np
import torch
from torch import Tensor

from search_space.dimensions import StackKind
from trial_runner.tasks import Batch


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
        "input_ids": torch.from_numpy(batch.input_ids).to(device),
        "attention_mask": torch.from_numpy(batch.attention_mask).to(device),
    }
    if batch.token_type_ids is not None and kind is StackKind.ENCODER:
        inputs["token_type_ids"] = torch.from_numpy(batch.token_type_ids).to(device)
    if kind is StackKind.ENCODER_DECODER:
        later = np.roll(batch.input_ids, 1, axis=1)  # (B, T)
        later[:, :1] = decoder_start_token_id
        inputs["decoder_input_ids"] = torch.from_numpy(later).to(device)
        inputs["decoder_attention_mask"] = inputs["attention_mask"]
    return inputs
