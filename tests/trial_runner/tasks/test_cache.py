import copy
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from trial_runner.backbones import load_tokenizer
from trial_runner.tasks import Task, default_cache_folder, prepare, prepare_task


@pytest.fixture
def folder(write_rows):
    return write_rows("train.jsonl", [{"text": f"number {n}", "label": n % 2} for n in range(200)])


@pytest.fixture
def tokenizer(tiny_backbone):
    return load_tokenizer(str(tiny_backbone("roberta")))


@pytest.fixture
def reads(monkeypatch):
    """Record the reads of files, apart from hashing them."""
    calls = []
    read = prepare.read_folder
    monkeypatch.setattr(prepare, "read_folder", lambda *arguments: calls.append(arguments) or read(*arguments))
    return calls


def source(folder, **options):
    return Task(folder=str(folder), text="text", label="label", **options)


def assert_equal(one, other):
    for name in ("name", "labels", "notes", "fingerprint"):
        assert getattr(one, name) == getattr(other, name)
    for split in ("train", "validation", "test"):
        for name in ("input_ids", "offsets", "labels"):
            mine, others = getattr(one.splits[split], name), getattr(other.splits[split], name)
            np.testing.assert_array_equal(mine, others, strict=True)


def test_a_task_is_tokenised_once_and_then_read_from_the_cache(tmp_path, folder, tokenizer, reads):
    first = prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    second = prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    assert len(reads) == 1
    assert_equal(first, second)


def test_a_folder_that_moved_and_another_metric_use_the_same_cache_entry(tmp_path, folder, tokenizer, reads):
    prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    moved = shutil.copytree(folder, tmp_path / "elsewhere" / folder.name)
    task = prepare_task(source(moved, metric="f1"), tokenizer, "id", tmp_path / "cache")
    assert len(reads) == 1
    assert task.metric == "f1"


def test_other_data_tokenizer_or_length_is_prepared_again(tmp_path, folder, tokenizer, reads):
    def fingerprint(name="id", **options):
        return prepare_task(source(folder, **options), tokenizer, name, tmp_path / "cache").fingerprint

    shorter, fewer = {"max_tokens": 9}, {"examples": {"train": 9}}
    fingerprints = [fingerprint(), fingerprint("other id"), fingerprint(**shorter), fingerprint(**fewer)]
    with (folder / "train.jsonl").open("a") as file:
        file.write('{"text": "one more", "label": 1}\n')
    fingerprints.append(fingerprint())
    assert len(set(fingerprints)) == len(reads) == 5


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign"])
def test_a_damaged_cache_entry_is_rebuilt(tmp_path, folder, tokenizer, reads, caplog, damage):
    first = prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    (entry,) = (tmp_path / "cache").rglob("*.safetensors")
    content = bytearray(entry.read_bytes())
    if damage == "flipped":
        content[-100] ^= 1
    damaged = {"empty": b"", "cut": content[:-50], "flipped": content, "foreign": b"\x02\0\0\0\0\0\0\0{}"}
    entry.write_bytes(bytes(damaged[damage]))
    second = prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    assert len(reads) == 2
    assert "damaged" in caplog.text
    assert_equal(first, second)
    prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    assert len(reads) == 2


def test_workers_that_prepare_at_the_same_time_leave_one_whole_entry(tmp_path, folder, tiny_backbone):
    tokenizers = [copy.deepcopy(load_tokenizer(str(tiny_backbone("roberta")))) for _ in range(4)]
    with ThreadPoolExecutor(4) as workers:
        tasks = list(workers.map(lambda own: prepare_task(source(folder), own, "id", tmp_path / "cache"), tokenizers))
    for task in tasks:
        assert_equal(tasks[0], task)
    assert len([file for file in (tmp_path / "cache").rglob("*") if file.is_file()]) == 1


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, folder, tokenizer, caplog):
    (tmp_path / "cache").touch()
    task = prepare_task(source(folder), tokenizer, "id", tmp_path / "cache")
    assert len(task.splits["train"]) > 100
    assert "not cached" in caplog.text


def test_the_cache_folder_is_the_one_that_was_chosen(monkeypatch, tmp_path):
    for blanks in ("", "\r", " \n"):
        monkeypatch.setenv("DELTASPACE_CACHE", f"{tmp_path / 'mine'}{blanks}")
        assert default_cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("DELTASPACE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_folder() == tmp_path / "xdg" / "deltaspace"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_folder() == tmp_path / ".cache" / "deltaspace"


def test_cache_of_a_user_without_home_is_below_the_root(monkeypatch):
    for name in ("DELTASPACE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: (_ for _ in ()).throw(KeyError(uid)))
    assert default_cache_folder() == Path("/.cache/deltaspace")
    monkeypatch.setenv("DELTASPACE_CACHE", "~/kept")
    assert default_cache_folder() == Path("~/kept")
