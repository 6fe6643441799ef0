"""Prepared tasks on disk: one safetensors file each, shared by all workers of a machine.

A file appears complete or not at all, and carries a checksum; one that is damaged counts as missing.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from trial_runner.files import unfinished

_LOGGER = logging.getLogger(__name__)

Facts = Mapping[str, Any]
Arrays = Mapping[str, npt.NDArray[Any]]
TaskT = TypeVar("TaskT")


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
    temporary = unfinished(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _LOGGER.warning("the tokenised task is not cached, because %s cannot be written: %s", path.parent, error)


def as_texts(values: Any) -> npt.NDArray[np.uint8]:
    """JSON-able values as an array of bytes."""
    return np.frombuffer(json.dumps(values, ensure_ascii=False).encode(), dtype=np.uint8)


def from_texts(array: npt.NDArray[Any]) -> Any:
    """What `as_texts` was given; tuples come back as lists."""
    return json.loads(array.tobytes().decode())


def _path(folder: Path, fingerprint: str) -> Path:
    return folder / "tasks" / f"{fingerprint}.safetensors"


def _checksum(arrays: Arrays, facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for key, array in sorted(arrays.items()):
        digest.update(f"{key}{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
