"""Tasks in a local folder: a file of rows per split, or a folder saved by ``datasets``."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from trial_runner.errors import TaskError
from trial_runner.files import expanded
from trial_runner.tasks.data.formats import (
    SAVED,
    has_data_suffix,
    is_part,
    opened_rows,
    reader_of,
    reading_notes,
    stem_of,
)
from trial_runner.tasks.splits import RawTask, RowsReader, RowsT, joined
from trial_runner.tasks.task import NO_GROUP, SPLITS, Task, parts_of, taken_names

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "validation": ("validation", "dev", "val"),
    "test": ("test",),
}
"""Accepted file names of each split, in any case."""

Files = Mapping[str, Mapping[str, tuple[Path, ...]]]
"""Files of each split and group of a folder; a saved dataset's folder counts as a file."""


def find_files(task: Task) -> Files:
    """Return the files of each split in the task's folder, by group.

    Raises:
        TaskError: If the folder or its train file is missing, or if a split has several files that are no shards.
    """
    folder = expanded(task.folder or "")
    if not folder.is_dir():
        raise TaskError(f"a task's folder must exist; there is no folder {task.folder}.")
    found: dict[str, dict[str, tuple[Path, ...]]] = {}
    if (folder / SAVED).is_file() and not task.splits:
        return {"train": {NO_GROUP: (folder,)}}
    for split in SPLITS:
        if split in task.splits:
            parts = {group: _files_named(folder, name, split) for group, name in parts_of(task.splits[split])}
        else:
            taken = taken_names(task.splits.values())
            free = tuple(name for name in OTHER_NAMES[split] if name not in taken)
            files = [file for file in held_files(folder) if stem_of(file).lower() in free and file.name not in taken]
            parts = {NO_GROUP: _one_split(folder, files, split)}
            if split == "train" and not files:
                raise _missing(folder, free[0] if free else split)
        held = {group: files for group, files in parts.items() if files}
        if held:
            found[split] = held
    return found


def held_files(folder: Path) -> list[Path]:
    """Return the files of rows and saved datasets in a folder, sorted by name.

    Raises:
        TaskError: If a folder has the name of a file.
    """
    entries = sorted(folder.iterdir())
    for entry in entries:
        if entry.is_dir() and has_data_suffix(entry) and reader_of(entry) is None:
            raise TaskError(f"{entry.name} of {folder} must be a file; it is a folder. Move what it holds up.")
    return [entry for entry in entries if reader_of(entry) is not None]


def _files_named(folder: Path, name: str, split: str) -> tuple[Path, ...]:
    """Return the files that a task names, with or without suffix, or by a path relative to the folder."""
    if "/" in name and reader_of(folder / name) is not None:
        return (folder / name,)
    files = [file for file in held_files(folder) if name in (file.name, stem_of(file))]
    exact = [file for file in files if file.name == name]
    if not files:
        raise _missing(folder, name)
    return _one_split(folder, exact or files, split)


def _one_split(folder: Path, files: list[Path], split: str) -> tuple[Path, ...]:
    """Return the files of a split after a check that they are one file or the shards of one."""
    is_whole = len(files) <= 1 or (all(map(is_part, files)) and len({stem_of(file) for file in files}) == 1)
    if not is_whole:
        names = ", ".join(file.name for file in files)
        raise TaskError(
            f"a split must be one file; {folder} has several for {split}: {names}. Say which under task.splits, or "
            "move the others away."
        )
    return tuple(files)


def _missing(folder: Path, wanted: str) -> TaskError:
    held = ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"
    suffixes = ".jsonl, .json, .csv, .tsv, .parquet, .arrow, or a folder that datasets saved"
    more = "" if has_data_suffix(Path(wanted)) else suffixes
    return TaskError(f"a task's folder must hold {wanted}{more}; {folder} holds: {held}.")


def files_digest(files: Files) -> str:
    """Return the SHA-256 over the contents of the files, their splits and groups, as hex."""
    digest = hashlib.sha256()
    for split, parts in sorted(files.items()):
        for group, held in sorted(parts.items()):
            for file in held:
                content = _content_digest(file)
                digest.update(f"{split} {group} {reader_of(file)} {content}\n".encode())
    return digest.hexdigest()


def _content_digest(path: Path) -> str:
    if path.is_dir():
        inside = sorted(file for file in path.iterdir() if file.is_file())
        return hashlib.sha256("".join(_content_digest(file) for file in inside).encode()).hexdigest()
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise TaskError(f"{path.name} of {path.parent} must be readable; {error.strerror}.") from error


def read_folder(files: Files, read: RowsReader[RowsT]) -> RawTask[RowsT]:
    """Read the files of a task.

    Args:
        files: Files of its splits, from `find_files`.
        read: Function that extracts a task kind's rows from a file's dataset.

    Raises:
        TaskError: If a file cannot be read, or its columns or rows do not fit the task.
    """

    def rows(split: str, group: str, held: tuple[Path, ...]) -> RowsT:
        with opened_rows(held, split) as dataset:
            return read(dataset, split, group)

    return RawTask(
        splits={
            split: joined([rows(split, group, held) for group, held in parts.items()]) for split, parts in files.items()
        },
        notes=tuple(note for parts in files.values() for held in parts.values() for note in reading_notes(held)),
    )
