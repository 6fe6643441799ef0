"""Preparation of a task: tokenised splits, once per task, tokenizer and length.

Prepared tasks are cached on disk: one safetensors file each, shared by all workers of a machine. A file appears
complete or not at all, and carries a checksum; a damaged one counts as missing.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from trial_runner.backbones import config_of, load_tokenizer, position_limit, tokenizer_id
from trial_runner.backbones.tokenizer import check_ids
from trial_runner.files import default_cache_folder, whole_file
from trial_runner.tasks.data.folder import files_digest, find_files, read_folder
from trial_runner.tasks.data.hub import read_hub
from trial_runner.tasks.embedded import EMBEDDED_TASKS
from trial_runner.tasks.kind import Facts, Preparation, Prepared
from trial_runner.tasks.kinds import check_task, kind_of
from trial_runner.tasks.splits import RawTask
from trial_runner.tasks.task import SPLITS, Task
from trial_runner.tasks.token_rows import TokenRows

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


_FORMAT = 6  # raise it when the same task would be prepared differently


def prepared_for(task: Task, backbone: str) -> Prepared:
    """Prepare a task for a backbone, by name; see `prepare_task`.

    Raises:
        BackboneError: If the backbone cannot be found, has no tokenizer, or no embedding for a token of the task.
    """
    tokenizer, config = load_tokenizer(backbone), config_of(backbone)
    prepared = prepare_task(
        task,
        tokenizer,
        tokenizer_id(tokenizer),
        position_limit_tokens=position_limit(config),
        stack=shape_of(config).kind,
    )
    check_ids(tokenizer, config, _ids_of(prepared.splits))
    return prepared


def _ids_of(splits: Mapping[str, Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield the tokens of all rows of splits."""
    for examples in splits.values():
        for each in fields(examples):
            value = getattr(examples, each.name)
            if isinstance(value, TokenRows):
                yield value.ids
            elif each.name == "input_ids":
                yield value


def prepare_task(
    task: Task,
    tokenizer: "PreTrainedTokenizerFast",
    tokenizer_id: str,
    cache_folder: Path | None = None,
    *,
    position_limit_tokens: int | None = None,
    stack: StackKind = StackKind.ENCODER,
) -> Prepared:
    """Read, complete, truncate and tokenise a task, or load it from the cache.

    Args:
        task: Task.
        tokenizer: Tokenizer of the backbone.
        tokenizer_id: Result of ``backbones.tokenizer_id`` for the tokenizer.
        cache_folder: Folder of prepared tasks; None takes ``default_cache_folder()``.
        position_limit_tokens: Number of tokens of the backbone's longest input; None without a limit.
        stack: Kind of the backbone; answers are prepared differently for each.

    Raises:
        TaskError: If the data cannot be found or read, or does not fit the task, if a length is beyond the
            backbone's positions, or if the backbone cannot generate.
    """
    check_task(task)
    preparation = kind_of(task).preparation(task, tokenizer, stack, position_limit_tokens)
    folder = default_cache_folder() if cache_folder is None else cache_folder
    digest, rows = _reader_of(task, preparation)
    tokens = " ".join(filter(None, (tokenizer_id, preparation.identity)))
    fingerprint = _fingerprint(preparation, digest, tokens)

    def restored(facts: Facts, arrays: Arrays) -> Prepared:
        splits = {split: split_of(arrays, split, preparation.new_split) for split in SPLITS}
        return preparation.prepared(fingerprint, facts, splits)  # type: ignore[no-any-return]

    prepared = read_cached(folder, fingerprint, restored)
    if prepared is None:
        facts, splits = preparation.tokenised(rows())
        facts = {**facts, "tokenizer": tokens}
        write_cached(folder, fingerprint, facts, arrays_of(splits))
        prepared = preparation.prepared(fingerprint, facts, splits)
    return prepared


def _reader_of(task: Task, preparation: Preparation) -> tuple[str, Callable[[], RawTask[Any]]]:
    """Return a hash of the data that changes with it, and the function that reads it."""
    if task.name is not None:
        embedded = EMBEDDED_TASKS[task.name]
        return embedded.digest(), embedded.read
    if task.folder is not None:
        files = find_files(task)
        return files_digest(files), lambda: read_folder(files, preparation.read)
    raw = read_hub(task, preparation.read)
    return raw.digest(), lambda: raw


def _fingerprint(preparation: Preparation, data_digest: str, tokenizer_id: str) -> str:
    """Return the hash of all that determines the tokens; their use and the path of a folder do not."""
    facts = {**preparation.facts, "data": data_digest, "tokenizer": tokenizer_id, "format": _FORMAT}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


_LOGGER = logging.getLogger(__name__)

Arrays = Mapping[str, npt.NDArray[Any]]
TaskT = TypeVar("TaskT")
SplitT = TypeVar("SplitT")


def read_cached(folder: Path, fingerprint: str, build: Callable[[Facts, Arrays], TaskT]) -> TaskT | None:
    """Load the prepared task of a fingerprint; None if it is missing or damaged.

    Args:
        folder: Folder of the cache.
        fingerprint: Fingerprint of the task.
        build: Function from the written facts and arrays to the task.
    """
    from safetensors import SafetensorError, safe_open

    path = _path(folder, fingerprint)
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            facts = json.loads(file.metadata()["task"])
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            checksum = file.metadata()["checksum"]
        if checksum != _checksum(arrays, file_facts := json.dumps(facts, sort_keys=True)):
            raise ValueError(f"the checksum of {len(file_facts)} bytes of facts and their arrays differs")
        return build(facts, arrays)
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        _LOGGER.warning("rebuilding the damaged cache file %s: %s", path, error)
        return None


def write_cached(folder: Path, fingerprint: str, facts: Facts, arrays: Arrays) -> None:
    """Write a prepared task to the cache; if the folder cannot be written, log it and continue."""
    from safetensors.numpy import save

    text = json.dumps(facts, sort_keys=True)
    content = save(dict(arrays), metadata={"task": text, "checksum": _checksum(arrays, text)})
    path = _path(folder, fingerprint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        _LOGGER.warning("the tokenised task is not cached, because %s cannot be written: %s", path.parent, error)


def arrays_of(splits: Mapping[str, Any]) -> Arrays:
    """Return fields of splits: arrays, rows of tokens as two, tuples of texts as JSON in bytes; others are left out."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for split, examples in splits.items():
        for each in fields(examples):
            place, value = f"{split}.{each.name}", getattr(examples, each.name)
            if isinstance(value, TokenRows):
                arrays |= {f"{place}.ids": value.ids, f"{place}.offsets": value.offsets}
            elif isinstance(value, np.ndarray):
                arrays[place] = value
            elif isinstance(value, tuple):
                arrays[place] = np.frombuffer(json.dumps(value, ensure_ascii=False).encode(), dtype=np.uint8)
    return arrays


def split_of(arrays: Arrays, split: str, new_split: Callable[..., SplitT]) -> SplitT:
    """Restore a split from the arrays of `arrays_of`.

    Args:
        arrays: Arrays of all splits.
        split: Name of the split.
        new_split: Constructor of the split from its fields.
    """
    held: dict[str, Any] = {}
    for key, array in arrays.items():
        of_split, name, *part = key.split(".")
        if of_split == split and part:
            held.setdefault(name, {})[part[0]] = array
        elif of_split == split:
            held[name] = _texts(array) if array.dtype == np.uint8 else array
    return new_split(**{name: TokenRows(**each) if isinstance(each, dict) else each for name, each in held.items()})


def _texts(array: npt.NDArray[Any]) -> tuple[Any, ...]:
    return tuple(tuple(each) if isinstance(each, list) else each for each in json.loads(array.tobytes()))


def _path(folder: Path, fingerprint: str) -> Path:
    return folder / "tasks" / f"{fingerprint}.safetensors"


def _checksum(arrays: Arrays, facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for key, array in sorted(arrays.items()):
        digest.update(f"{key}{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
