"""Where the data of a new study stands, and which of its parts are train, validation and test."""

import importlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studies.errors import StudiesError, WishError
from trial_runner.errors import TaskError
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
_FORMS = "data must be a pandas frame, a datasets.Dataset, or a mapping of train, validation and test to either"
_LOOKED_BYTES = 64 << 20
"""Larger files are looked at from their beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSource:
    """Data that a study can be about.

    Attributes:
        title: A short name.
        task: The keys of a task that say where it stands.
        remarks: What a reader of the study file should know of it.
    """

    title: str
    task: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    @contextmanager
    def opened(self) -> "Iterator[Mapping[str, Dataset]]":
        """The rows of each split, of large ones some.

        Raises:
            TaskError: If they cannot be had.
        """
        if "hub" in self.task:
            with opened_hub(*_named(self.task["hub"])) as held:
                splits = self.task.get("splits", {})
                names = {split: splits.get(split, _usual(split, list(held))) for split in SPLITS}
                yield {split: held[name] for split, name in names.items() if name is not None}
            return
        with ExitStack() as stack:
            opened = {split: head_rows(held, split, _LOOKED_BYTES) for split, held in self._files.items()}
            yield {split: stack.enter_context(rows)[0] for split, rows in opened.items()}

    @property
    def is_large(self) -> bool:
        """Whether only some rows of a split are looked at."""
        if "hub" in self.task:
            return False
        return max(sum(each.stat().st_size for each in held) for held in self._files.values()) > _LOOKED_BYTES

    @property
    def _files(self) -> dict[str, tuple[Path, ...]]:
        files = find_files(Task(folder=self.task["folder"], splits=dict(self.task.get("splits", {}))))
        return {split: sum(parts.values(), ()) for split, parts in files.items()}


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
    paths = [Path(each).expanduser() for each in given]
    if len(paths) == 1 and paths[0].is_dir():
        return _of_folder(paths[0])
    missing = [str(path) for path in paths if not path.exists()]
    if not missing:
        return _of_files(paths)
    name = str(given[0])
    is_path = len(given) > 1 or has_known_suffix(paths[0]) or name.startswith((".", "/", "~"))
    if is_path or not is_hub_name(name):
        raise TaskError(f"data must be a folder, files or a dataset of the hub; there is no {missing[0]}.")
    return _of_hub(name, configuration)


def _of_folder(folder: Path) -> DataSource:
    if (folder / SAVED).is_file():
        return DataSource(title=_title(folder), task={"folder": str(folder)})
    files = held_files(folder)
    inner = folder / "data"
    if not files and inner.is_dir() and held_files(inner):
        return _source(inner, held_files(inner), title=_title(folder))
    if not files:
        held = ", ".join(sorted(each.name for each in folder.iterdir())[:8]) or "nothing"
        raise TaskError(f"data must be {READABLE}, or a folder that datasets saved; {folder} holds: {held}.")
    return _source(folder, files, title=_title(folder))


def _of_files(paths: Sequence[Path]) -> DataSource:
    for path in paths:
        if reader_of(path) is None:
            what = "it is a folder" if path.is_dir() else f"its name ends in {path.suffix or 'nothing'}"
            raise TaskError(f"data must be {READABLE}; got {path}: {what}.")
    folder = Path(os.path.commonpath([path.absolute().parent for path in paths]))
    title = stem_of(paths[0]) if len(paths) == 1 and not _role(stem_of(paths[0])) else folder.name
    relative = Path(os.path.relpath(folder))
    shown = folder if relative.parts[:1] == ("..",) else relative
    return _source(shown, [folder / path.absolute().relative_to(folder) for path in paths], title=slug(title))


def _source(folder: Path, files: Sequence[Path], *, title: str) -> DataSource:
    """The data of some files of a folder."""
    base = folder.absolute()
    names: dict[str, list[Path]] = {}
    for file in files:
        inside = file.absolute().relative_to(base)
        names.setdefault(str(inside.with_name(stem_of(file))), []).append(inside)
    chosen, others = _assigned(list(names))
    splits = {}
    for split, name in chosen.items():
        is_found = name.lower() in OTHER_NAMES[split] and sum(each.lower() == name.lower() for each in names) == 1
        if not is_found or len({stem_of(file) for file in names[name]}) != 1:
            splits[split] = name if len(names[name]) > 1 else str(names[name][0])
    task: dict[str, Any] = {"folder": str(folder), **({"splits": splits} if splits else {})}
    are_json = any(file.suffix.lower() == ".json" for name in chosen.values() for file in names[name])
    left = [str(file) for name in others for file in names[name] if are_json or file.suffix.lower() != ".json"]
    return DataSource(title=title, task=task, remarks=(f"not used: {', '.join(left)}",) if left else ())


def _of_hub(name: str, configuration: str | None) -> DataSource:
    with opened_hub(name, configuration) as held:
        present = list(held)
    chosen, others = _assigned(present)
    splits = {split: each for split, each in chosen.items() if _usual(split, present) != each}
    task: dict[str, Any] = {"hub": {"name": name, "configuration": configuration} if configuration else name}
    task |= {"splits": splits} if splits else {}
    title = slug(configuration or name.rpartition("/")[2])
    return DataSource(title=title, task=task, remarks=(f"not used: {', '.join(others)}",) if others else ())


def _named(hub: "str | Mapping[str, str]") -> tuple[str, str | None]:
    """Name and configuration of a data set of the hub."""
    return (hub, None) if isinstance(hub, str) else (hub["name"], hub.get("configuration"))


def _usual(split: str, present: Sequence[str]) -> str | None:
    """What is taken for a split unless the task says otherwise."""
    return next((name for name in OTHER_NAMES[split] if name in present), None)


def _assigned(names: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The name of each split that is there, and the names that are none.

    Raises:
        TaskError: If it is not clear which is train.
    """
    chosen: dict[str, str] = {}
    for split in SPLITS:
        exact = [name for usual in OTHER_NAMES[split] for name in names if name.lower() == usual]
        likely = exact or sorted((name for name in names if _role(name) == split), key=len)
        if len(likely) > 1 and split == "train" and not exact:
            raise TaskError(f"one file must be train; these may be: {', '.join(likely)}. Name the files of one study.")
        if likely:
            chosen[split] = likely[0]
    rest = [name for name in names if name not in chosen.values()]
    if "train" not in chosen:
        free = [name for name in rest if _role(name) is None]
        if len(free) != 1:
            held = ", ".join(names)
            raise TaskError(f"one file must be train; the data has: {held}. Name it so, or name that file alone.")
        chosen["train"] = free[0]
        rest.remove(free[0])
    return {split: chosen[split] for split in SPLITS if split in chosen}, rest


def _role(name: str) -> str | None:
    """The split that a name says, in its words."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return next((split for split, usual in _WORDS.items() if words & usual), None)


def _title(folder: Path) -> str:
    return slug(folder.absolute().name)


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
    if not splits or not all(_is_table(each) for each in splits.values()):
        got = ", ".join(sorted({type(each).__name__ for each in splits.values()})) or "nothing"
        raise WishError(f"{_FORMS}; got {got}.")
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


def object_of(place: str) -> Any:
    """What stands in Python at ``module:name`` or ``file.py:name``; of a function what it returns.

    Raises:
        StudiesError: If there is no such thing.
    """
    home, colon, name = place.rpartition(":")
    if not colon or not home or not name:
        raise WishError(f"data in Python must be named as module:name or file.py:name; got {place!r}.")
    try:
        module = _module_of(home)
    except (ImportError, OSError, SyntaxError) as error:
        raise WishError(f"{home} must be a module that can be imported; got: {error}.") from error
    if not hasattr(module, name):
        raise WishError(f"{home} must have the data under {name!r}; it has no such name.")
    found = getattr(module, name)
    return found() if callable(found) and not _is_table(found) else found


def _module_of(home: str) -> Any:
    if not home.endswith(".py"):
        return importlib.import_module(home)
    spec = importlib.util.spec_from_file_location(Path(home).stem, home)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {home}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_table(data: Any) -> bool:
    return hasattr(data, "to_parquet")
