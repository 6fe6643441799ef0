"""From a task's source to tokenised splits, once per source, tokenizer and length."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, overload

from search_space.dimensions import StackKind
from trial_runner.errors import TaskError
from trial_runner.tasks.cache import default_cache_folder, read_cached, write_cached
from trial_runner.tasks.classification import preparing as classification
from trial_runner.tasks.classification.raw import RawSplit, read_split
from trial_runner.tasks.classification.source import TaskSource
from trial_runner.tasks.classification.split import PreparedTask
from trial_runner.tasks.data.docstrings import docstrings_digest, read_docstrings
from trial_runner.tasks.data.folder import files_digest, find_files, read_folder
from trial_runner.tasks.data.hub import read_hub
from trial_runner.tasks.data.place import Place
from trial_runner.tasks.data.rows import RawTask, RowsReader, RowsT
from trial_runner.tasks.generation import preparing as generation
from trial_runner.tasks.generation.encode import TextEncoder
from trial_runner.tasks.generation.raw import RawTextSplit, read_text_split
from trial_runner.tasks.generation.source import TextTaskSource
from trial_runner.tasks.generation.split import PreparedTextTask

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerFast

_FORMAT = 2  # raise it when the same source would be prepared differently
_NOT_OF_TOKENS = ("metric", "metrics", "early_metric", "decoding", "label_smoothing")


@overload
def prepare_task(
    source: TaskSource,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = ...,
    *,
    position_limit_tokens: int | None = ...,
    stack: StackKind = ...,
) -> PreparedTask: ...


@overload
def prepare_task(
    source: TextTaskSource,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = ...,
    *,
    position_limit_tokens: int | None = ...,
    stack: StackKind,
) -> PreparedTextTask: ...


@overload
def prepare_task(
    source: TaskSource | TextTaskSource,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = ...,
    *,
    position_limit_tokens: int | None = ...,
    stack: StackKind,
) -> PreparedTask | PreparedTextTask: ...


def prepare_task(
    source: TaskSource | TextTaskSource,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = None,
    *,
    position_limit_tokens: int | None = None,
    stack: StackKind = StackKind.ENCODER,
) -> PreparedTask | PreparedTextTask:
    """Read, complete, cut and tokenise a task, or take it from the cache.

    Args:
        source: Of the texts, and of their labels or of the texts to be written.
        tokenizer: Of the backbone.
        tokenizer_id: What ``backbones.tokenizer_id`` says of the tokenizer.
        cache_folder: Where prepared tasks are kept; None takes ``default_cache_folder()``.
        position_limit_tokens: Longest input of the backbone; None if there is no limit.
        stack: Kind of the backbone; what is to be written is prepared differently for each.

    Raises:
        TaskError: If the data cannot be found or read, or is not what the source says, if a length is beyond the
            backbone's positions, or if the backbone cannot generate.
    """
    folder = default_cache_folder() if cache_folder is None else cache_folder
    if isinstance(source, TaskSource):
        return _prepare_classes(source, tokenizer, tokenizer_id, folder, position_limit_tokens)
    encoder = TextEncoder(source, tokenizer, stack)
    _check_lengths(source, stack, position_limit_tokens)
    return _prepare_texts(source, encoder, tokenizer_id, folder)


def _prepare_classes(
    source: TaskSource, tokenizer: "PreTrainedTokenizerFast", tokenizer_id: str, folder: Path, limit: int | None
) -> PreparedTask:
    _check_length("max_tokens", source.max_tokens, limit)

    def read(dataset: "Dataset", split: str, group: str) -> RawSplit:
        return read_split(dataset, source, split, group)

    data_digest, rows = (
        (docstrings_digest(), read_docstrings) if source.kind == "embedded" else _reader_of(source, read)
    )
    fingerprint = _fingerprint(source, data_digest, tokenizer_id)
    cached = read_cached(folder, fingerprint, lambda *held: classification.restored(source, fingerprint, *held))
    if cached is not None:
        return cached
    task = classification.tokenised(rows(), source, tokenizer, fingerprint)
    write_cached(folder, fingerprint, *classification.stored(task))
    return task


def _prepare_texts(source: TextTaskSource, encoder: TextEncoder, tokenizer_id: str, folder: Path) -> PreparedTextTask:
    def read(dataset: "Dataset", split: str, group: str) -> RawTextSplit:
        return read_text_split(dataset, source, split, group)

    data_digest, rows = _reader_of(source, read)
    stack = encoder.stack
    fingerprint = _fingerprint(source, data_digest, f"{tokenizer_id} {encoder.identity}")
    cached = read_cached(folder, fingerprint, lambda *held: generation.restored(source, stack, fingerprint, *held))
    if cached is not None:
        return cached
    task = generation.tokenised(rows(), source, encoder, fingerprint)
    write_cached(folder, fingerprint, *generation.stored(task))
    return task


def _reader_of(place: Place, read: RowsReader[RowsT]) -> tuple[str, Callable[[], RawTask[RowsT]]]:
    """A hash of the data that changes whenever the data does, and the function that reads it."""
    if place.kind == "folder":
        files = find_files(place)
        return files_digest(files), lambda: read_folder(place, files, read)
    raw = read_hub(place, read)
    return raw.digest(), lambda: raw


def _fingerprint(source: TaskSource | TextTaskSource, data_digest: str, tokenizer_id: str) -> str:
    """Hash of all that decides the tokens; neither what is done with them does, nor the place of a folder."""
    facts = {key: value for key, value in dataclasses.asdict(source).items() if key not in _NOT_OF_TOKENS}
    facts |= {"name": source.title, "data": data_digest, "tokenizer": tokenizer_id, "format": _FORMAT}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _check_lengths(source: TextTaskSource, stack: StackKind, limit: int | None) -> None:
    """Refuse lengths beyond the positions of either stack; a decoder has source and target in one row."""
    written = {"max_target_tokens": source.max_target_tokens, "max_new_tokens": source.decoding.max_new_tokens}
    if stack is StackKind.ENCODER_DECODER:
        for name, tokens in {"max_tokens": source.max_tokens, **written}.items():
            _check_length(name, tokens, limit)
        return
    for name, tokens in written.items():
        _check_length(f"max_tokens and {name} together", source.max_tokens + tokens, limit)


def _check_length(name: str, tokens: int, limit: int | None) -> None:
    if limit is not None and tokens > limit:
        raise TaskError(f"{name} must be at most {limit}, the positions of the backbone; got {tokens}.")
