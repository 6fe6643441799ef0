"""Agreement of an export with its trial: both loaded as users load them, compared on two examples."""

import gc
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from search_space.backbones import shape_of
from trial_runner.attachment.inputs import model_inputs
from trial_runner.backbones import config_of
from trial_runner.errors import MODEL_FAULTS, ExportError, RunnerError
from trial_runner.export.predictors import PEFT, OpenedExport
from trial_runner.export.trained import DELTA_FILE, DELTASPACE, HEAD_PREFIX
from trial_runner.huggingface import one_line
from trial_runner.tasks import Batch

_LENGTHS = 16, 11
"""Number of tokens of each of the two examples, unless the task's texts are shorter."""
_FP32_ERROR, _BF16_ERROR = 2.0**-16, 2.0**-7


def check_agreement(folder: Path, attached: Path, *, max_tokens: int) -> None:
    """Check that an export computes the outputs of its trial.

    Both are loaded on the CPU, one after the other, so that one copy of the backbone is in memory at a time.

    Args:
        folder: Export as merged weights or as an adapter of peft.
        attached: Export of the same trial in the project's own format.
        max_tokens: Maximum number of tokens of the task's texts.

    Raises:
        ExportError: If the export cannot be loaded, or its outputs differ by more than rounding.
    """
    exported, own = (replace(OpenedExport.read(each), device=torch.device("cpu")) for each in (folder, attached))
    wanted: Tensor | None = None
    try:
        examples = _examples(exported, own, max_tokens)
        wanted = _outputs(own, examples)
        found = _outputs(exported, examples)
    except (*MODEL_FAULTS, OSError) as error:
        if wanted is None and isinstance(error, RunnerError):
            raise
        raise ExportError(
            f"cannot export as {exported.form}: loading it back failed with {one_line(error).rstrip('.')}. "
            "Export without it."
        ) from error
    # Merged weights are rounded once more than the trial's, and their sums have another order. Each of the two halves
    # of a block adds one rounding error in a random direction: sqrt(2 L) errors in all. The bound is four times that:
    # both computations are rounded, and the largest of many outputs is compared. An error is 2^-7 where weights, or
    # products of quantised layers, are bf16, else 2^-16, the accuracy of sums of thousands of float32 products. Errors
    # are relative to the largest output.
    is_coarse = own.backbone.dtype == "bf16" or (own.backbone.quantization != "none" and exported.form == PEFT)
    shape = shape_of(config_of(own.source))
    layers = shape.encoder_layers + shape.decoder_layers
    bound = 4 * math.sqrt(2 * layers) * (_BF16_ERROR if is_coarse else _FP32_ERROR)
    difference = float((found - wanted).abs().max() / max(float(wanted.abs().max()), _head_norm(attached)))
    if not difference <= bound:
        raise ExportError(
            f"cannot export as {exported.form}: its outputs differ from the trial's by {difference:.2g} of their size, "
            f"and rounding explains {bound:.2g}. Export without it, and report this."
        )


def _head_norm(attached: Path) -> float:
    """Return the norm of the task head's largest row, the scale of rounding for outputs near 0; 0 without a head."""
    head = load_file(attached / DELTA_FILE).get(f"{HEAD_PREFIX}weight")
    return 0.0 if head is None else float(head.double().norm(dim=1).max())


def _examples(exported: OpenedExport, own: OpenedExport, max_tokens: int) -> list[NDArray[np.int64]]:
    """Draw the tokens of two texts from the vocabulary, without special tokens."""
    tokenizer = exported.tokenizer()
    size = min(len(tokenizer), int(config_of(own.source).get("vocab_size") or len(tokenizer)))
    usual = np.setdiff1d(np.arange(size), tokenizer.all_special_ids)
    draws = np.random.default_rng(0)
    return [draws.choice(usual if len(usual) else size, min(length, max_tokens)) for length in _LENGTHS]


def _outputs(opened: OpenedExport, examples: Sequence[NDArray[np.int64]]) -> Tensor:
    """Return the logits of both texts, flattened: of labels as one batch, else of the next tokens, text by text."""
    is_bf16 = opened.form == DELTASPACE and opened.backbone.dtype == "bf16"
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
        if opened.facts.get("labels") is None:
            found = _next_tokens(opened, examples)
        else:
            found = opened.labeller()[0](_batch(examples)).double().flatten()
    gc.collect()  # hooks and their model refer to each other
    return found


def _next_tokens(opened: OpenedExport, examples: Sequence[NDArray[np.int64]]) -> Tensor:
    base, _ = opened.writer()
    model: Any = base.whole
    rows = []
    for example in examples:
        inputs = model_inputs(_batch([example]), base.shape.kind, opened.device, base.model.config)
        logits = model(**inputs).logits[:, -len(example) :].double()  # (1, T, V), without rows of a prompt
        rows.append((logits - logits.mean(dim=-1, keepdim=True)).flatten())  # the mean changes no probability
    return torch.cat(rows)


def _batch(examples: Sequence[NDArray[np.int64]]) -> Batch:
    width = max(map(len, examples))
    lengths = np.array([[len(one)] for one in examples])
    return Batch(
        input_ids=np.stack([np.pad(one, (0, width - len(one))) for one in examples]),
        attention_mask=np.arange(width) < lengths,
        token_type_ids=None,
        labels=np.zeros(len(examples), dtype=np.int64),
    )
