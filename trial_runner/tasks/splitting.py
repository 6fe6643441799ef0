"""Splits by hash: what data lacks is carved from train, and large splits are cut. The same on every machine."""

import hashlib

from trial_runner.errors import TaskError
from trial_runner.tasks.raw import RawSplit, RawTask
from trial_runner.tasks.source import SPLITS, TaskSource

__all__ = ["complete_splits", "subsample", "text_hash"]

_CARVED = {"validation": range(100), "test": range(100, 200)}  # of 1,000 equal shares of the hash


def text_hash(text: str, salt: str) -> int:
    """A 64-bit hash of a text; hashes with different salts are independent."""
    return int.from_bytes(hashlib.sha256(f"{salt}\x1f{text}".encode()).digest()[:8], "big")


def complete_splits(task: RawTask) -> RawTask:
    """Carve a missing validation or test split, each a tenth of train, out of it.

    The hash of the normalised text decides, so equal texts never end up in two splits.

    Raises:
        TaskError: If train is too small to be carved.
    """
    missing = [name for name in SPLITS if name not in task.splits]
    if not missing:
        return task
    train = task.splits["train"]
    rows: dict[str, list[int]] = {name: [] for name in ("train", *missing)}
    for row, key in enumerate(train.keys()):
        share = text_hash(key, "carve") % 1000
        rows[next((name for name in missing if share in _CARVED[name]), "train")].append(row)
    splits: dict[str, RawSplit] = {**task.splits}
    notes = list(task.notes)
    for name, chosen in rows.items():
        if not chosen:
            raise TaskError(
                f"train must be large enough to carve a tenth of it for {name}; it has {len(train)} rows. "
                f"Give a file or split for {name}."
            )
        splits[name] = train.take(chosen)
        if name != "train":
            notes.append(f"{name}: carved from train by a hash of the text, {len(chosen)} of {len(train)} rows")
    return RawTask(splits={name: splits[name] for name in SPLITS}, notes=tuple(notes))


def subsample(task: RawTask, source: TaskSource) -> RawTask:
    """Keep as many examples of train and validation as were asked for, chosen by hash, in their order."""
    splits = dict(task.splits)
    notes = list(task.notes)
    for name, count in (("train", source.train_examples), ("validation", source.validation_examples)):
        split = splits[name]
        if count is None or count >= len(split):
            continue
        salt = f"{source.title}\x1f{name}"
        keys = split.keys()
        by_hash = sorted(range(len(split)), key=lambda row: (text_hash(keys[row], salt), row))
        splits[name] = split.take(sorted(by_hash[:count]))
        notes.append(f"{name}: {count} of {len(split)} rows, chosen by a hash of the text")
    return RawTask(splits=splits, notes=tuple(notes))
