"""What an export makes of texts that no task holds: labels with their probabilities, or written texts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate import PartialState
from datasets import Dataset
from numpy.typing import NDArray

from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import LanguageModel, load_backbone, load_language_model, load_tokenizer, tokenizer_id
from trial_runner.errors import ExportError
from trial_runner.export import BackboneFacts, LoadedDelta, load_delta
from trial_runner.export.facts import read_json
from trial_runner.export.writing import DELTA_FACTS
from trial_runner.objectives.writing import Writer
from trial_runner.runner import chosen_precision
from trial_runner.tasks import QuestionColumns, TextColumns, TextTaskSource
from trial_runner.tasks.classification.encode import encode_split
from trial_runner.tasks.classification.raw import RawSplit
from trial_runner.tasks.generation.encode import TextEncoder
from trial_runner.tasks.generation.raw import read_text_split
from trial_runner.tasks.generation.split import TextSplit

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_LONGEST = 512

Tell = Callable[[int, int], None]
"""Told how many of how many are done, after every batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What is predicted for one text.

    Attributes:
        answer: The label, or the text that was written.
        scores: Probability of every label; None of a text that was written.
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
) -> list[Prediction]:
    """Labels of texts or pairs of texts, in their order.

    Args:
        folder: Of the export of a classification.
        rows: One or two texts each, of all the same number.
        max_tokens: Longer texts are cut; None for what the backbone takes, at most 512.
        batch_size: Rows of a pass; those of like lengths are computed together.
        backbone: Name or folder; None takes the one that the export names.
        tell: See `Tell`.

    Raises:
        ExportError: If the export was changed, belongs to another backbone, or has no task head.
        BackboneError: If the backbone cannot be had.
    """
    name, precision = _facts(folder, backbone)
    register_attention()
    loaded_backbone = load_backbone(name, attn_implementation=ATTENTION)
    place = PartialState().device
    loaded_backbone.model.to(place)
    delta = load_delta(loaded_backbone, folder)
    if delta.head is None:
        raise ExportError(f"the export in {folder} must have a task head to predict labels; it has none.")
    tokenizer = _tokenizer(name, delta)
    limit = loaded_backbone.position_limit_tokens
    longest = min(limit or _LONGEST, _LONGEST) if max_tokens is None else max_tokens
    count = len(rows)
    raw = RawSplit(columns=tuple(zip(*rows, strict=True)), labels=(None,) * count, groups=("",) * count)
    split, _ = encode_split(raw, np.zeros(count, dtype=np.int64), tokenizer, longest)
    scores = np.zeros((count, len(delta.labels)))
    with torch.inference_mode(), _computing(precision, place):
        for some in _batches(np.diff(split.offsets), batch_size, tell):
            logits = delta.logits(split.batch(some, loaded_backbone.pad_token_id))  # (B, labels)
            scores[some] = logits.double().softmax(dim=-1).cpu().numpy()
    delta.detach()
    return [
        Prediction(answer=delta.labels[row.argmax()], scores=dict(zip(delta.labels, row.tolist(), strict=True)))
        for row in scores
    ]


def write(
    folder: Path,
    rows: Sequence[tuple[str, ...]],
    *,
    task: TextTaskSource,
    batch_size: int,
    backbone: str | None = None,
    tell: Tell,
) -> list[Prediction]:
    """Texts that are written for sources, in their order.

    Args:
        folder: Of the export of a task whose answer is a text.
        rows: A source each; of question answering a context and a question.
        task: What the trial was trained for: says how sources are prepared and texts generated.
        batch_size: Rows of a pass; those of like lengths are computed together.
        backbone: Name or folder; None takes the one that the export names.
        tell: See `Tell`.

    Raises:
        ExportError: If the export was changed or belongs to another backbone.
        BackboneError: If the backbone cannot be had.
    """
    name, precision = _facts(folder, backbone)
    register_attention()
    model = load_language_model(name, attn_implementation=ATTENTION)
    place = PartialState().device
    model.model.to(place)
    delta = load_delta(model.model, folder)
    encoder = TextEncoder(task, _tokenizer(name, delta), model.backbone.shape.kind)
    split = _sources(rows, task, encoder)
    writer = _writer(model, task, encoder)
    texts = [""] * len(rows)
    with torch.inference_mode(), _computing(precision, place):
        for some in _batches(split.sources.lengths, batch_size, tell):
            prompts = split.prompts(some, model.backbone.pad_token_id)
            (written,) = writer.write(prompts, copies=1, device=place)
            for row, text in zip(some, written, strict=True):
                texts[row] = text
    delta.detach()
    return [Prediction(answer=text, scores=None) for text in texts]


def _facts(folder: Path, backbone: str | None) -> tuple[str, str]:
    """Name of the backbone, and the precision that the trial was trained in."""
    facts = read_json(folder / DELTA_FACTS)
    name = BackboneFacts.from_json(facts.get("backbone")).name
    return backbone or name, str(facts.get("precision") or "fp32")


def _tokenizer(name: str, delta: LoadedDelta) -> "PreTrainedTokenizerFast":
    """The tokenizer of a backbone, if it is the one of the training."""
    tokenizer = load_tokenizer(name)
    stated = delta.facts.get("tokenizer")
    wanted = stated.get("sha256") if isinstance(stated, dict) else None
    found = tokenizer_id(tokenizer)
    if wanted is not None and wanted != found:
        raise ExportError(
            f"the backbone must have the tokenizer of the training, {str(wanted)[:12]}; {name} has {found[:12]}. "
            "Restore it."
        )
    return tokenizer


@contextmanager
def _computing(precision: str, place: torch.device) -> Iterator[None]:
    """Compute with products of the precision of the training."""
    with torch.autocast(place.type, torch.bfloat16, enabled=chosen_precision(precision, place) == "bf16"):
        yield


def _batches(lengths: NDArray[Any], size: int, tell: Tell) -> Iterator[NDArray[Any]]:
    """All rows, those of like lengths together, longest first, so that what is too large is too large at once."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]
        tell(min(start + size, len(order)), len(order))


def _sources(rows: Sequence[tuple[str, ...]], task: TextTaskSource, encoder: TextEncoder) -> TextSplit:
    """Sources as training prepares them, with targets that nothing reads."""
    is_question = isinstance(task.columns, QuestionColumns)
    columns = QuestionColumns() if is_question else TextColumns(source="source", target="target")
    names = ("context", "question", "answers") if is_question else ("source", "target")
    values = [*zip(*rows, strict=True), ["-"] * len(rows)]
    dataset = Dataset.from_dict(dict(zip(names, values, strict=True)))
    plain = TextTaskSource(
        kind="folder",
        name="rows",
        task_kind=task.task_kind,
        columns=columns,
        decoding=task.decoding,
        metric=task.metric,
        instruction=task.instruction,
    )
    split, _ = encoder.encode(read_text_split(dataset, plain, "train"), "train")
    return split


def _writer(model: LanguageModel, task: TextTaskSource, encoder: TextEncoder) -> Writer:
    base: Any = model.backbone.model
    own = getattr(base.config, "decoder_start_token_id", None)
    start = next((each for each in (encoder.start_token_id, own) if each is not None), model.backbone.pad_token_id)
    return Writer(model, task.decoding, eos_token_id=encoder.eos_token_id, start_token_id=start)
