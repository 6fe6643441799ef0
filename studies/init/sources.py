"""Location of the data of a new study, and the parts that are train, validation and test."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.errors import InvalidRequestError, StudiesError
from trial_runner.errors import TaskError
from trial_runner.files import expanded
from trial_runner.huggingface import is_hub_name, quiet_datasets
from trial_runner.tasks import SPLITS, Task
from trial_runner.tasks.data.folder import OTHER_NAMES, find_files, held_files
from trial_runner.tasks.data.formats import READABLE, SAVED, has_data_suffix, head_rows, reader_of, stem_of
from trial_runner.tasks.data.hub import opened_hub

if TYPE_CHECKING:
    from datasets import Dataset

_WORDS = {
    "train": {"train", "training"},
    "validation": {"validation", "valid", "val", "dev", "development"},
    "test": {"test", "testing", "eval"},
}
_LOOKED_BYTES = 64 << 20
"""Size of a file above which only its beginning is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Data for a study.

    Attributes:
        title: A short name.
        task: Keys of a task with the location of the data.
        unused: Names of parts that are no split.
    """

    title: str
    task: Mapping[str, Any]
    unused: tuple[str, ...] = ()

    @contextmanager
    def opened(self) -> "Iterator[tuple[Dataset, bool]]":
        """Yield the rows of train, for a large file those at its beginning, and whether they are all.

        Raises:
            TaskError: If they cannot be read.
        """
        task = Task(**self.task)
        if task.hub is not None:
            with opened_hub(task.hub.name, task.hub.configuration) as held:
                yield held[str(task.splits.get("train", "train"))], True
            return
        (files,) = find_files(task)["train"].values()
        with head_rows(files, _LOOKED_BYTES) as (rows, is_whole):
            yield rows, is_whole


def data_source_of(given: Sequence[str | Path], *, configuration: str | None = None) -> DataSource:
    """Find the data of a study.

    Args:
        given: A folder, files, or the name of a dataset on the hub.
        configuration: Configuration of the hub's dataset.

    Raises:
        TaskError: If there is no such data, or it is unclear which part of it is train.
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
    is_path = len(given) > 1 or has_data_suffix(paths[0]) or name.startswith((".", "/", "~"))
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
    title = stem_of(paths[0]) if len(paths) == 1 and not _split_in_name(stem_of(paths[0])) else folder.name
    named = _named(paths, folder)
    if not all(path.is_absolute() for path in paths):
        folder = Path(os.path.relpath(folder))
    return _source(title, {"folder": str(folder)}, named)


def _named(files: Sequence[Path], folder: Path) -> dict[str, str]:
    """Return the value of a task's ``splits`` for each file, by file name without suffix; several parts share one."""
    named: dict[str, str] = {}
    for file in files:
        inside = file.absolute().relative_to(folder.absolute())
        name = str(inside.with_name(stem_of(file)))
        named[name] = name if name in named else str(inside)
    return named


def _source(title: str, place: Mapping[str, Any], named: Mapping[str, str]) -> DataSource:
    """Build the data source of a location.

    Args:
        title: Name of the data.
        place: Key of a task with the location.
        named: Values of a task's ``splits`` by name of the part.
    """
    chosen = _splits_of(list(named))
    splits = {split: named[name] for split, name in chosen.items() if name not in OTHER_NAMES[split]}
    unused = tuple(called for name, called in named.items() if name not in chosen.values())
    return DataSource(title=slug(title), task={**place, **({"splits": splits} if splits else {})}, unused=unused)


def _splits_of(names: Sequence[str]) -> dict[str, str]:
    """Return the name of the part for each split that exists.

    Raises:
        TaskError: If it is unclear which is train.
    """
    chosen: dict[str, str] = {}
    for split in SPLITS:
        exact = [name for usual in OTHER_NAMES[split] for name in names if name.lower() == usual]
        likely = exact or sorted((name for name in names if _split_in_name(name) == split), key=len)
        if len(likely) > 1 and split == "train" and not exact:
            raise TaskError(f"one file must be train; these may be: {', '.join(likely)}. Name the files of one study.")
        if likely:
            chosen[split] = likely[0]
    if "train" not in chosen:
        free = [name for name in names if _split_in_name(name) is None]
        if len(free) != 1:
            held = ", ".join(names)
            raise TaskError(f"one file must be train; the data has: {held}. Name it so, or name that file alone.")
        chosen["train"] = free[0]
    return {split: chosen[split] for split in SPLITS if split in chosen}


def _split_in_name(name: str) -> str | None:
    """Return the split that is named by a word of a name; None if there is none."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return next((split for split, usual in _WORDS.items() if words & usual), None)


def slug(text: str) -> str:
    """Return a text as a valid name of a study."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._") or "study"


def save_object(data: Any, folder: Path) -> Path:
    """Write data to a folder, one parquet file per split, and return the folder.

    Args:
        data: A pandas frame, a ``datasets.Dataset``, or a mapping of split names to either.
        folder: Target; it must not exist, or contain only files of an earlier call.

    Raises:
        StudiesError: If the data has another type, or cannot be written.
    """
    splits = data if isinstance(data, Mapping) else {"train": data}
    if not splits or not all(hasattr(each, "to_parquet") for each in splits.values()):
        got = ", ".join(sorted({type(each).__name__ for each in splits.values()})) or "nothing"
        raise InvalidRequestError(
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
