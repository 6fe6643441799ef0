"""From a task's source to tokenised splits, once per source, tokenizer and length."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trial_runner.errors import TaskError
from trial_runner.tasks.cache import default_cache_folder, read_cached, write_cached
from trial_runner.tasks.docstrings import docstrings_digest, read_docstrings
from trial_runner.tasks.encode import encode_split
from trial_runner.tasks.folder import files_digest, find_files, read_folder
from trial_runner.tasks.hub import read_hub
from trial_runner.tasks.labels import drop_unlabelled, labelling_of
from trial_runner.tasks.raw import RawTask
from trial_runner.tasks.source import TaskSource
from trial_runner.tasks.split import PreparedTask, Split
from trial_runner.tasks.splitting import complete_splits, subsample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["prepare_task"]

_FORMAT = 1  # raise it when the same source would be prepared differently


def prepare_task(
    source: TaskSource,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = None,
    *,
    position_limit_tokens: int | None = None,
) -> PreparedTask:
    """Read, complete, cut and tokenise a task, or take it from the cache.

    Args:
        source: Of the text and labels.
        tokenizer: Of the backbone.
        tokenizer_id: What ``backbones.tokenizer_id`` says of the tokenizer.
        cache_folder: Where prepared tasks are kept; None takes ``default_cache_folder()``.
        position_limit_tokens: Longest input of the backbone; None if there is no limit.

    Raises:
        TaskError: If the data cannot be found or read, or is not what the source says.
    """
    if position_limit_tokens is not None and source.max_tokens > position_limit_tokens:
        raise TaskError(
            f"max_tokens must be at most {position_limit_tokens}, the positions of the backbone; "
            f"got {source.max_tokens}."
        )
    folder = default_cache_folder() if cache_folder is None else cache_folder
    data_digest, read = _reader_of(source)
    fingerprint = _fingerprint(source, data_digest, tokenizer_id)
    cached = read_cached(folder, fingerprint, source.metric)
    if cached is not None:
        return cached
    task = _tokenise(read(), source, tokenizer, fingerprint)
    write_cached(folder, task)
    return task


def _reader_of(source: TaskSource) -> tuple[str, Callable[[], RawTask]]:
    """A hash of the data that changes whenever the data does, and the function that reads it."""
    match source.kind:
        case "embedded":
            return docstrings_digest(), read_docstrings
        case "folder":
            files = find_files(source)
            return files_digest(files), lambda: read_folder(source, files)
        case "hub":
            raw = read_hub(source)
            return raw.digest(), lambda: raw


def _fingerprint(source: TaskSource, data_digest: str, tokenizer_id: str) -> str:
    """Hash of all that decides the tokens; neither the metric nor the place of a folder does."""
    facts = dataclasses.asdict(source)
    del facts["metric"]
    facts |= {"name": source.title, "data": data_digest, "tokenizer": tokenizer_id, "format": _FORMAT}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _tokenise(raw: RawTask, source: TaskSource, tokenizer: "PreTrainedTokenizerFast", fingerprint: str) -> PreparedTask:
    """Complete, cut, label and tokenise what was read."""
    labelled = drop_unlabelled(raw)
    labelling = labelling_of(labelled.splits, source.labels)
    task = subsample(complete_splits(labelled), source)
    splits: dict[str, Split] = {}
    notes = list(task.notes)
    for name, split in task.splits.items():
        labels = labelling.encode(split.labels, name)
        splits[name], cut = encode_split(split, labels, tokenizer, source.max_tokens)
        if cut:
            notes.append(f"{name}: {cut} of {len(split)} examples cut to {source.max_tokens} tokens")
    return PreparedTask(
        name=source.title,
        labels=labelling.names,
        metric=source.metric,
        splits=splits,
        notes=tuple(notes),
        fingerprint=fingerprint,
    )
