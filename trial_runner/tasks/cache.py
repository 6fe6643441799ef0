"""Prepared tasks on disk: one safetensors file each, shared by all workers of a machine.

A file appears complete or not at all, and carries a checksum; one that is damaged counts as missing.
"""

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trial_runner.tasks.source import SPLITS
from trial_runner.tasks.split import PreparedTask, Split

__all__ = ["default_cache_folder", "read_cached", "write_cached"]

_LOGGER = logging.getLogger(__name__)
_ARRAYS = ("input_ids", "offsets", "labels", "token_type_ids")


def default_cache_folder() -> Path:
    """``$DELTASPACE_CACHE``, else ``deltaspace`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``."""
    chosen = os.environ.get("DELTASPACE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "deltaspace"


def read_cached(folder: Path, fingerprint: str, metric: str) -> PreparedTask | None:
    """The prepared task of a fingerprint; None if it is not in the cache or damaged there."""
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
        return PreparedTask(
            name=facts["name"],
            labels=tuple(facts["labels"]),
            metric=metric,
            splits={split: _split_of(arrays, split) for split in SPLITS},
            notes=tuple(facts["notes"]),
            fingerprint=fingerprint,
        )
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        _LOGGER.warning("rebuilding the damaged cache file %s: %s", path, error)
        return None


def write_cached(folder: Path, task: PreparedTask) -> None:
    """Put a prepared task in the cache; if the folder cannot be written, log it and go on."""
    from safetensors.numpy import save

    arrays = {
        f"{split}.{name}": array
        for split, examples in task.splits.items()
        for name in _ARRAYS
        if (array := getattr(examples, name)) is not None
    }
    facts = json.dumps({"name": task.name, "labels": task.labels, "notes": task.notes}, sort_keys=True)
    content = save(arrays, metadata={"task": facts, "checksum": _checksum(arrays, facts)})
    path = _path(folder, task.fingerprint)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            file.write(content)
        Path(file.name).replace(path)
    except OSError as error:
        _LOGGER.warning("the tokenised task is not cached, because %s cannot be written: %s", path.parent, error)


def _path(folder: Path, fingerprint: str) -> Path:
    return folder / "tasks" / f"{fingerprint}.safetensors"


def _split_of(arrays: dict[str, npt.NDArray[np.generic]], split: str) -> Split:
    return Split(**{name: arrays[f"{split}.{name}"] for name in _ARRAYS if f"{split}.{name}" in arrays})  # type: ignore[arg-type]


def _checksum(arrays: dict[str, npt.NDArray[np.generic]], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for key, array in sorted(arrays.items()):
        digest.update(f"{key}{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
