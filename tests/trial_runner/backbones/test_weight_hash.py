"""Hashes of weights: of large files once per machine, of what may have changed anew."""

import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from trial_runner.backbones import weight_hash
from trial_runner.backbones.weight_hash import files_sha256, weight_paths
from trial_runner.errors import BackboneError


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record the files that are hashed, one after another; none is too small for the cache."""
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weight_hash, "SMALL_BYTES", 0)
    found: list[Path] = []
    compute = hashlib.file_digest

    def count(file: BinaryIO, digest: str) -> Any:
        found.append(Path(file.name))
        return compute(file, digest)

    monkeypatch.setattr(hashlib, "file_digest", count)
    return found


@pytest.fixture
def folder(tiny_backbone: Callable[..., Path], tmp_path: Path) -> Path:
    """Return a backbone that did not change for an hour."""
    copy = tmp_path / "backbone"
    copy.mkdir()
    for file in tiny_backbone("qwen3").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    age(copy)
    return copy


def age(folder: Path, seconds: float = 3600.0) -> None:
    for file in folder.iterdir():
        os.utime(file, (time.time() - seconds,) * 2)


def test_a_large_file_is_hashed_once_until_it_changes(hashed, folder):
    (file,) = weight_paths(str(folder))
    first = files_sha256(str(folder))
    assert files_sha256(str(folder)) == first
    assert hashed == [file]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # as long as before
    file.write_bytes(bytes(content))
    age(folder, seconds=1800)
    assert files_sha256(str(folder)) != first
    assert hashed == [file, file]


def test_recently_changed_file_is_hashed_again(hashed, folder):
    age(folder, seconds=0)
    assert files_sha256(str(folder)) == files_sha256(str(folder))
    assert len(hashed) == 2


def test_concurrent_hashes_of_one_file_are_computed_once(hashed, folder):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(files_sha256, [str(folder)] * 4))
    assert len(set(found)) == 1
    assert len(hashed) == 1


@pytest.mark.parametrize("content", ["", "{", '{"of": "another", "sha256": "0"}', "[]"])
def test_unreadable_cached_hash_is_computed_again(hashed, folder, tmp_path, content):
    first = files_sha256(str(folder))
    (kept,) = (tmp_path / "cache" / "weights").glob("*.json")
    kept.write_text(content)
    assert files_sha256(str(folder)) == first
    assert len(hashed) == 2
    assert files_sha256(str(folder)) == first
    assert len(hashed) == 2


def test_a_backbone_without_weights_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackboneError, match="must be on this machine"):
        files_sha256(str(tmp_path))
