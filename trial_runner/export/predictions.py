"""Predictions of an export for new texts: labels with their probabilities, or generated texts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from search_space.dimensions import StackKind
from trial_runner.attachment.frozen_model import default_device
from trial_runner.backbones import config_of, position_limit
from trial_runner.backbones.locate import padding_token
from trial_runner.backbones.tokenizer import check_ids
from trial_runner.errors import ExportError
from trial_runner.export.predictors import OpenedExport
from trial_runner.objectives.decoding import Writer
from trial_runner.runner import chosen_precision
from trial_runner.tasks import Task, kind_of
from trial_runner.tasks.classification.kind import encode_split

_MAX_TOKENS = 512

Tell = Callable[[int, int], None]
"""Callback with the number of finished rows and that of all rows, called after every batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction for one text.

    Attributes:
        answer: Label, number of a regression, or generated text.
        scores: Probability of every label; None for regressions and generated texts.
    """

    answer: str
    scores: dict[str, float] | None


def classify(
    folder: Path,
    rows: Sequence[tuple[str, ...]],
    *,
    max_tokens: int | None,
    batch_size: int,
    backbone: str | None = None,
    tell: Tell,
) -> tuple[list[Prediction], str]:
    """Predict the labels of texts or of pairs of texts, in their order; return also a line if some are truncated.

    Args:
        folder: Folder of the export of a classification.
        rows: One or two texts per row, equally many in all rows.
        max_tokens: Number of tokens to which texts are truncated; None for the backbone's limit, at most 512.
        batch_size: Number of rows per pass; rows of similar lengths share a pass.
        backbone: Name or folder; None for the one that the export names.
        tell: Callback for progress; see `Tell`.

    Raises:
        ExportError: If the export was changed, belongs to another backbone, or has no task head.
        BackboneError: If the backbone cannot be loaded.
    """
    export = OpenedExport.read(folder, backbone)
    labels, (logits_of, config), place = export.labels, export.labeller(), default_device()
    limit, pad_token_id = position_limit(config), padding_token(config)
    longest = min(limit or _MAX_TOKENS, _MAX_TOKENS) if max_tokens is None else max_tokens
    unknown = np.zeros(len(rows), dtype=np.int64)
    tokenizer = export.tokenizer()
    split, cut = encode_split(list(zip(*rows, strict=True)), unknown, tokenizer, longest)
    check_ids(tokenizer, config, [split.input_ids])
    outputs = np.zeros((len(rows), len(labels)))
    with torch.inference_mode(), _autocast(export.precision, place):
        for some in _batches(np.diff(split.offsets), batch_size, tell):
            logits = logits_of(split.batch(some, pad_token_id)).double()  # (B, labels)
            # one label is a regression: classifications have two or more
            outputs[some] = (logits if len(labels) == 1 else logits.softmax(dim=-1)).cpu().numpy()
    if len(labels) == 1:
        found = [Prediction(answer=f"{number:.6g}", scores=None) for (number,) in outputs.tolist()]
    else:
        found = [
            Prediction(answer=labels[row.argmax()], scores=dict(zip(labels, row.tolist(), strict=True)))
            for row in outputs
        ]
    return found, _cut_line(cut, len(rows), longest)


def _cut_line(cut: int, count: int, longest: int) -> str:
    """Return the line on truncated texts; empty without any."""
    verb = "is" if cut == 1 else "are"
    return f"{cut:,} of {count:,} texts {verb} cut to {longest:,} tokens, as in training." if cut else ""


def write(
    folder: Path,
    sources: Sequence[str],
    *,
    task: Task,
    batch_size: int,
    backbone: str | None = None,
    tell: Tell,
) -> tuple[list[Prediction], str]:
    """Generate texts for sources, in their order; return also a line if some are truncated.

    Args:
        folder: Folder of the export of a text-generation task.
        sources: Source texts, in the format of the training.
        task: Task of the training, with its options of truncation and generation.
        batch_size: Number of sources per pass; sources of similar lengths share a pass.
        backbone: Name or folder; None for the one that the export names.
        tell: Callback for progress; see `Tell`.

    Raises:
        ExportError: If the export was changed or belongs to another backbone.
        BackboneError: If the backbone cannot be loaded.
    """
    export = OpenedExport.read(folder, backbone)
    (model, is_one_by_one), place = export.writer(), default_device()
    encode = kind_of(task).encoder
    if encode is None:
        raise ExportError(f"the task of a generation must have texts as answers; got {task.kind}. This is a bug.")
    tokenizer = export.tokenizer()
    encoder = encode(task, tokenizer, model.shape.kind)
    rows, cut = encoder.sources(sources)
    check_ids(tokenizer, config_of(export.source), [rows.ids])
    writer = Writer(model, encoder)
    texts = [""] * len(sources)
    with torch.inference_mode(), _autocast(export.precision, place):
        for some in _batches(rows.lengths, 1 if is_one_by_one else batch_size, tell):
            prompts = rows.padded(some, model.pad_token_id, on_left=encoder.stack is StackKind.DECODER)
            (written,) = writer.write(*prompts, copies=1, device=place)
            for row, text in zip(some, written, strict=True):
                texts[row] = text
    return [Prediction(answer=text, scores=None) for text in texts], _cut_line(cut, len(texts), task.max_tokens)


@contextmanager
def _autocast(precision: str, place: torch.device) -> Iterator[None]:
    """Compute products in the precision of the training, within the context."""
    with torch.autocast(place.type, torch.bfloat16, enabled=chosen_precision(precision, place) == "bf16"):
        yield


def _batches(lengths: NDArray[Any], size: int, tell: Tell) -> Iterator[NDArray[Any]]:
    """Yield the indices of all rows, longest rows first, so that a lack of memory shows at the first batch."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]
        tell(min(start + size, len(order)), len(order))
