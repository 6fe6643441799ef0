"""Where the data of a new study stands, and which of its parts are train, validation and test."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.errors import StudiesError, WishError
from trial_runner.errors import TaskError
from trial_runner.files import expanded
from trial_runner.huggingface import is_hub_name, quiet_datasets
from trial_runner.tasks import SPLITS, Task
from trial_runner.tasks.data.folder import OTHER_NAMES, find_files, held_files
from trial_runner.tasks.data.formats import READABLE, SAVED, has_known_suffix, head_rows, reader_of, stem_of
from trial_runner.tasks.data.hub import opened_hub

if TYPE_CHECKING:
    from datasets import Dataset

_WORDS = {
    "train": {"train", "training"},
    "validation": {"validation", "valid", "val", "dev", "development"},
    "test": {"test", "testing", "eval"},
}
_LOOKED_BYTES = 64 << 20
"""Larger files are looked at from their beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Data that a study can be about.

    Attributes:
        title: A short name.
        task: The keys of a task that say where it stands.
        unused: Names of its parts that are no split.
    """

    title: str
    task: Mapping[str, Any]
    unused: tuple[str, ...] = ()

    @contextmanager
    def opened(self) -> "Iterator[tuple[Dataset, bool]]":
        """The rows of train, of a large file those at its beginning; and whether they are all.

        Raises:
            TaskError: If they cannot be had.
        """
        task = Task(**self.task)
        if task.hub is not None:
            with opened_hub(task.hub.name, task.hub.configuration) as held:
                yield held[str(task.splits.get("train", "train"))], True
            return
        (files,) = find_files(task)["train"].values()
        with head_rows(files, "train", _LOOKED_BYTES) as (rows, is_whole):
            yield rows, is_whole


def source_of(given: Sequence[str | Path], *, configuration: str | None = None) -> DataSource:
    """The data that a user means.

    Args:
        given: A folder, files, or the name of a dataset of the hub.
        configuration: Of the hub's dataset.

    Raises:
        TaskError: If there is no such data, or it is not clear which part of it is train.
    """
    if not given:
        raise TaskError("a study needs data; name a folder, files, or a dataset of the hub.")
    paths = [expanded(each) for each in given]
    if len(paths) == 1 and paths[0].is_dir():
        return _of_folder(paths[0])
    missing = [str(path) for path in paths if not path.exists()]
    if not missing:
        return _of_files(paths)
    name = str(given[0])
    is_path = len(given) > 1 or has_known_suffix(paths[0]) or name.startswith((".", "/", "~"))
    if is_path or not is_hub_name(name):
        raise TaskError(f"data must be a folder, files or a dataset of the hub; there is no {missing[0]}.")
    with opened_hub(name, configuration) as held:
        names = {split: split for split in held}
    place = {"hub": {"name": name, "configuration": configuration} if configuration else name}
    return _source(configuration or name.rpartition("/")[2], place, names)


def _of_folder(folder: Path) -> DataSource:
    title = folder.absolute().name
    if (folder / SAVED).is_file():
        return DataSource(title=slug(title), task={"folder": str(folder)})
    files = held_files(folder)
    if not files:
        held = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
        raise TaskError(f"data must be {READABLE}, or a folder that datasets saved; {folder} holds: {held}.")
    return _source(title, {"folder": str(folder)}, _named(files, folder))


def _of_files(paths: Sequence[Path]) -> DataSource:
    for path in paths:
        if reader_of(path) is None:
            what = "it is a folder" if path.is_dir() else f"its name ends in {path.suffix or 'nothing'}"
            raise TaskError(f"data must be {READABLE}; got {path}: {what}.")
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    title = stem_of(paths[0]) if len(paths) == 1 and not _split_said(stem_of(paths[0])) else folder.name
    named = _named(paths, folder)
    if not all(path.is_absolute() for path in paths):
        folder = Path(os.path.relpath(folder))
    return _source(title, {"folder": str(folder)}, named)


def _named(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """What a task calls each file of a folder, or all parts of one, by its name without what follows it."""
    named: dict[str, str] = {}
    for file in files:
        inside = file.absolute().relative_to(folder.absolute())
        name = str(inside.with_name(stem_of(file)))
        named[name] = name if name in named else str(inside)
    return named


def _source(title: str, place: Mapping[str, Any], named: Mapping[str, str]) -> DataSource:
    """The data at a place.

    Args:
        place: A key of a task.
        named: What a task calls its parts, by their names.
    """
    chosen = _splits_of(list(named))
    splits = {split: named[name] for split, name in chosen.items() if name not in OTHER_NAMES[split]}
    unused = tuple(called for name, called in named.items() if name not in chosen.values())
    return DataSource(title=slug(title), task={**place, **({"splits": splits} if splits else {})}, unused=unused)


def _splits_of(names: Sequence[str]) -> dict[str, str]:
    """The name of each split that is there.

    Raises:
        TaskError: If it is not clear which is train.
    """
    chosen: dict[str, str] = {}
    for split in SPLITS:
        exact = [name for usual in OTHER_NAMES[split] for name in names if name.lower() == usual]
        likely = exact or sorted((name for name in names if _split_said(name) == split), key=len)
        if len(likely) > 1 and split == "train" and not exact:
            raise TaskError(f"one file must be train; these may be: {', '.join(likely)}. Name the files of one study.")
        if likely:
            chosen[split] = likely[0]
    if "train" not in chosen:
        free = [name for name in names if _split_said(name) is None]
        if len(free) != 1:
            held = ", ".join(names)
            raise TaskError(f"one file must be train; the data has: {held}. Name it so, or name that file alone.")
        chosen["train"] = free[0]
    return {split: chosen[split] for split in SPLITS if split in chosen}


def _split_said(name: str) -> str | None:
    """The split that a name says, in its words."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return next((split for split, usual in _WORDS.items() if words & usual), None)


def slug(text: str) -> str:
    """A name as a study may have it."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._") or "study"


def save_object(data: Any, folder: Path) -> Path:
    """Write data to a new folder, a parquet file for each split; return the folder.

    Args:
        data: A pandas frame, a ``datasets.Dataset``, or a mapping of names of splits to either.
        folder: Must not exist, or hold nothing but what this wrote before.

    Raises:
        StudiesError: If the data is something else, or cannot be written.
    """
    splits = data if isinstance(data, Mapping) else {"train": data}
    if not splits or not all(hasattr(each, "to_parquet") for each in splits.values()):
        got = ", ".join(sorted({type(each).__name__ for each in splits.values()})) or "nothing"
        raise WishError(
            "data must be a pandas frame, a datasets.Dataset, or a mapping of train, validation and test to either; "
            f"got {got}."
        )
    with quiet_datasets():
        from datasets import Dataset
        from pyarrow import ArrowException

        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, held in splits.items():
                rows = held if isinstance(held, Dataset) else Dataset.from_pandas(held, preserve_index=False)
                rows.to_parquet(str(folder / f"{name}.parquet"))
        except (OSError, ValueError, TypeError, ArrowException) as error:
            raise StudiesError(f"data must be written to {folder}; got: {' '.join(str(error).split())}.") from error
    return folder
