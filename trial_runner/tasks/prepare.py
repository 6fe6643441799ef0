"""From a task to tokenised splits, once per task, tokenizer and length."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_space.dimensions import StackKind
from trial_runner.files import default_cache_folder
from trial_runner.tasks.cache import Arrays, Facts, arrays_of, read_cached, split_of, write_cached
from trial_runner.tasks.data.folder import files_digest, find_files, read_folder
from trial_runner.tasks.data.hub import read_hub
from trial_runner.tasks.data.rows import RawTask
from trial_runner.tasks.embedded import EMBEDDED_TASKS
from trial_runner.tasks.kind import Preparation, Prepared
from trial_runner.tasks.kinds import check_task, kind_of
from trial_runner.tasks.task import SPLITS, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_FORMAT = 3  # raise it when the same task would be prepared differently


def prepare_task(
    task: Task,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = None,
    *,
    position_limit_tokens: int | None = None,
    stack: StackKind = StackKind.ENCODER,
) -> Prepared:
    """Read, complete, cut and tokenise a task, or take it from the cache.

    Args:
        tokenizer_id: What ``backbones.tokenizer_id`` says of the tokenizer.
        cache_folder: Where prepared tasks are kept; None takes ``default_cache_folder()``.
        position_limit_tokens: Longest input of the backbone; None if there is no limit.
        stack: Kind of the backbone; what is to be written is prepared differently for each.

    Raises:
        TaskError: If the data cannot be found or read, or is not what the task says, if a length is beyond the
            backbone's positions, or if the backbone cannot generate.
    """
    check_task(task)
    preparation = kind_of(task).preparation(task, tokenizer, stack, position_limit_tokens)
    folder = default_cache_folder() if cache_folder is None else cache_folder
    digest, rows = _reader_of(task, preparation)
    fingerprint = _fingerprint(preparation, digest, " ".join(filter(None, (tokenizer_id, preparation.identity))))

    def restored(facts: Facts, arrays: Arrays) -> Prepared:
        splits = {split: split_of(arrays, split, preparation.new_split) for split in SPLITS}
        return preparation.prepared(fingerprint, facts, splits)  # type: ignore[no-any-return]

    prepared = read_cached(folder, fingerprint, restored)
    if prepared is None:
        facts, splits = preparation.tokenised(rows())
        write_cached(folder, fingerprint, facts, arrays_of(splits))
        prepared = preparation.prepared(fingerprint, facts, splits)
    return prepared


def _reader_of(task: Task, preparation: Preparation) -> tuple[str, Callable[[], RawTask[Any]]]:
    """A hash of the data that changes whenever the data does, and the function that reads it."""
    if task.name is not None:
        embedded = EMBEDDED_TASKS[task.name]
        return embedded.digest(), embedded.read
    if task.folder is not None:
        files = find_files(task)
        return files_digest(files), lambda: read_folder(task, files, preparation.read)
    raw = read_hub(task, preparation.read)
    return raw.digest(), lambda: raw


def _fingerprint(preparation: Preparation, data_digest: str, tokenizer_id: str) -> str:
    """Hash of all that decides the tokens; neither what is done with them does, nor the place of a folder."""
    facts = {**preparation.facts, "data": data_digest, "tokenizer": tokenizer_id, "format": _FORMAT}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
