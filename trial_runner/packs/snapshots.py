"""Snapshots as files: one safetensors file each, its facts as JSON in the header. No pickles."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from search_space.json_text import read_json_text
from trial_runner.errors import SnapshotError
from trial_runner.files import unfinished
from trial_runner.requests import Snapshot

SCHEMA_VERSION = 1


def save_snapshot(snapshot: Snapshot, folder: Path) -> Path:
    """Write a snapshot to ``folder/step-000050.safetensors``: temporary name, fsync, read back, atomic rename.

    Returns:
        Path of the file.

    Raises:
        OSError: If it cannot be written, or the file differs from the written data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    facts = {**snapshot.facts, "schema_version": SCHEMA_VERSION, "trial": snapshot.trial, "step": snapshot.step}
    tensors = {name: tensor.contiguous() for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
    data = save(tensors, metadata={"facts": json.dumps(facts, sort_keys=True)})
    path = folder / f"step-{snapshot.step:06d}.safetensors"
    temporary = unfinished(path)
    with temporary.open("xb") as file:  # never through a link that somebody laid there
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if temporary.read_bytes() != data:
        temporary.unlink()
        raise OSError(f"{temporary} does not hold what was written")
    temporary.replace(path)
    _sync_folder(folder)
    return path


def load_snapshot(path: Path) -> Snapshot:
    """Read a snapshot.

    Raises:
        SnapshotError: If the file is missing, damaged, or of another schema version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts: Any = read_json_text((file.metadata() or {})["facts"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (OSError, SafetensorError, KeyError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())
        raise SnapshotError(f"a snapshot must be a whole safetensors file; {path} is not: {told[:200]}.") from error
    if not isinstance(facts, dict) or not all(type(facts.get(name)) is int for name in ("trial", "step")):
        raise SnapshotError(f"a snapshot must say its trial and step, two whole numbers; {path} does not.")
    if facts.get("schema_version") != SCHEMA_VERSION:
        raise SnapshotError(
            f"a snapshot must be of schema version {SCHEMA_VERSION}; {path} is of {facts.get('schema_version')!r}."
        )
    return Snapshot(trial=facts["trial"], step=facts["step"], facts=facts, tensors=tensors)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
