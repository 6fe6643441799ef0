"""Hash of a backbone's weights, computed once per machine for large files.

Hashes of files are cached beside the prepared tasks, under the files' paths, sizes and times of change. Small files are
hashed anew, and so are files that changed just now, which could change once more within the same tick.
"""

import fcntl
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trial_runner.backbones.locate import source_of
from trial_runner.errors import BackboneError
from trial_runner.files import default_cache_folder, whole_file

if TYPE_CHECKING:
    import torch

_LOGGER = logging.getLogger(__name__)

SMALL_BYTES = 1 << 28
"""Total bytes of files up to which hashing takes less than a second."""

_SETTLED_SECONDS = 10.0
_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


def weights_sha256(model: "torch.nn.Module") -> str:
    """Return the SHA-256 over the names, shapes and values (as float32) of a model's weights, as hex.

    Equal for any file format and for ``float32`` and ``float64`` loads of the same stored weights.
    """
    return tensors_sha256(model.state_dict())


def tensors_sha256(tensors: "Mapping[str, Any]") -> str:
    """Return the hash of `weights_sha256` for tensors by name."""
    digest = hashlib.sha256()
    for key, tensor in sorted(tensors.items()):
        digest.update(f"{key}{tuple(tensor.shape)}".encode())
        digest.update(memoryview(tensor.detach().float().cpu().contiguous().numpy()).cast("B"))
    return digest.hexdigest()


def loaded_sha256(name: str, model: "torch.nn.Module") -> str:
    """Return `weights_sha256` of a base model in the precision of its files; cached per machine for large files."""
    import transformers

    of_what = f"{type(model).__name__} of transformers {transformers.__version__}"
    return _remembered(weight_paths(name), of_what, lambda: weights_sha256(model))


def files_sha256(name: str) -> str:
    """Return the SHA-256 over the files of a backbone's weights, as hex, for any dtype in which they are loaded.

    Raises:
        BackboneError: If there are none on this machine.
    """
    paths = weight_paths(name)
    if not paths:
        raise BackboneError(f"weights of backbone {name} must be on this machine to be told from others; got none.")
    parts = [_remembered([path], "file", partial(_file_sha256, path)) for path in paths]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def weight_paths(name: str) -> list[Path]:
    """Return the safetensors files of a backbone, sorted; of the hub those in its cache."""
    source = source_of(name)
    if Path(source).is_dir():
        return sorted(Path(source).glob("*.safetensors"))
    from huggingface_hub import try_to_load_from_cache

    index = try_to_load_from_cache(source, _INDEX)
    names = [_SINGLE]
    if isinstance(index, str):
        names = sorted(set(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"].values()))
    found = [try_to_load_from_cache(source, one) for one in names]
    return [Path(one) for one in found if isinstance(one, str)]


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remembered(paths: Sequence[Path], of_what: str, compute: Callable[[], str]) -> str:
    """Return a hash of files, computed unless it is cached on this machine."""
    states = [(str(path.resolve()), path.stat()) for path in paths]
    changed = max((state.st_mtime for _, state in states), default=0.0)
    if sum(state.st_size for _, state in states) <= SMALL_BYTES or changed > time.time() - _SETTLED_SECONDS:
        return compute()
    key = json.dumps([of_what, [(path, state.st_size, state.st_mtime_ns) for path, state in states]])
    place = default_cache_folder() / "weights" / f"{hashlib.sha256(key.encode()).hexdigest()}.json"
    with _alone(place):
        known = _read(place, key)
        if known is None:
            known = compute()
            _write(place, key, known)
    return known


def _read(place: Path, key: str) -> str | None:
    try:
        stored = json.loads(place.read_text(encoding="utf-8"))
        return str(stored["sha256"]) if stored["of"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(place: Path, key: str, sha256: str) -> None:
    try:
        with whole_file(place) as temporary:
            temporary.write_text(json.dumps({"of": key, "sha256": sha256}), encoding="utf-8")
    except OSError as error:
        _LOGGER.warning("a hash of weights is not kept, because %s cannot be written: %s", place.parent, error)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Let one process of this machine compute the hash while others wait; without file locks all compute it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_suffix(".lock").open("w")
    except OSError:
        yield
        return
    with lock:
        with suppress(OSError):  # a disk without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
