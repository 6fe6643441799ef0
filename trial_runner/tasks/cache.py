"""Prepared tasks on disk: one safetensors file each, shared by all workers of a machine.

A file appears complete or not at all, and carries a checksum; one that is damaged counts as missing.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from trial_runner.files import whole_file
from trial_runner.tasks.token_rows import TokenRows

_LOGGER = logging.getLogger(__name__)

Facts = Mapping[str, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
TaskT = TypeVar("TaskT")
SplitT = TypeVar("SplitT")


def read_cached(folder: Path, fingerprint: str, build: Callable[[Facts, Arrays], TaskT]) -> TaskT | None:
    """The prepared task of a fingerprint; None if it is not in the cache or damaged there.

    Args:
        build: Makes the task of the facts and arrays that were written.
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
    """Put a prepared task in the cache; if the folder cannot be written, log it and go on."""
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
    """The fields of splits: arrays, rows of tokens as two, tuples of texts as JSON in bytes; others are left out."""
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
    """A split of what `arrays_of` made of it.

    Args:
        new_split: Makes it of its fields.
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
