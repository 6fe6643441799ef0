"""Tasks in a local folder: one jsonl, json, csv or parquet file per split."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trial_runner.errors import TaskError
from trial_runner.huggingface import one_line, quiet_datasets
from trial_runner.tasks.data.rows import RawTask, RowsReader, RowsT, joined
from trial_runner.tasks.groups import NO_GROUP
from trial_runner.tasks.task import SPLITS, Task, parts_of, taken_names

_READERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
_OTHER_NAMES = {"train": ("train",), "validation": ("validation", "dev", "val"), "test": ("test",)}


Files = Mapping[str, Mapping[str, Path]]
"""Of each split that the folder has, the file of each of its groups."""


def find_files(task: Task) -> Files:
    """The files of each split that the folder has, by group.

    Raises:
        TaskError: If the folder or its train file is missing, or if a split has several files.
    """
    folder = Path(task.folder or "").expanduser()
    if not folder.is_dir():
        raise TaskError(f"a task's folder must exist; there is no folder {task.folder}.")
    found: dict[str, dict[str, Path]] = {}
    for split in SPLITS:
        if split in task.splits:
            parts = {group: _file_of(folder, (name,), split) for group, name in parts_of(task.splits[split])}
        else:
            free = tuple(name for name in _OTHER_NAMES[split] if name not in taken_names(task.splits.values()))
            parts = {NO_GROUP: _file_of(folder, free, split, is_needed=split == "train")}
        files = {group: file for group, file in parts.items() if file is not None}
        if files:
            found[split] = files
    return found


def _file_of(folder: Path, stems: tuple[str, ...], split: str, *, is_needed: bool = True) -> Path | None:
    files = [
        file
        for file in sorted(folder.iterdir())
        if file.suffix in _READERS and (file.stem in stems or file.name in stems)
    ]
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise TaskError(f"a split must be one file; {folder} has several for {split}: {names}.")
    if not files and is_needed:
        held = ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"
        wanted = stems[0] if stems else split
        raise TaskError(f"a task's folder must hold {wanted}.jsonl, .json, .csv or .parquet; {folder} holds: {held}.")
    return files[0] if files else None


def files_digest(files: Files) -> str:
    """SHA-256 over the contents of the files and the splits they stand for, as hex."""
    digest = hashlib.sha256()
    for split, parts in sorted(files.items()):
        for group, file in sorted(parts.items()):
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{split} {group} {_READERS[file.suffix]} {content}\n".encode())
    return digest.hexdigest()


def read_folder(task: Task, files: Files, read: RowsReader[RowsT]) -> RawTask[RowsT]:
    """Read the files of a task.

    Args:
        task: In a folder.
        files: What `find_files` found in it.
        read: Takes the rows of a kind of task out of a file's dataset.

    Raises:
        TaskError: If a file cannot be read, or its columns or rows are not those of the task.
    """
    return RawTask(
        splits={
            split: joined([_read_file(task, split, group, file, read) for group, file in parts.items()])
            for split, parts in files.items()
        }
    )


def _read_file(task: Task, split: str, group: str, file: Path, read: RowsReader[RowsT]) -> RowsT:
    """Read one file through ``datasets``, whose own copy of it is thrown away afterwards."""
    if not file.stat().st_size:
        raise TaskError(f"split {split!r} must hold at least one example; {file.name} is empty.")
    reader = _READERS[file.suffix]
    # Without this, pandas takes the texts "null", "None" and "NA" for missing values.
    options = {"keep_default_na": False} if reader == "csv" else {}
    with quiet_datasets(), tempfile.TemporaryDirectory(prefix="deltaspace-") as cache:
        from datasets import load_dataset
        from datasets.exceptions import DatasetsError

        try:
            dataset = load_dataset(reader, data_files=str(file), split="train", cache_dir=cache, **options)
        except (OSError, ValueError, DatasetsError) as error:
            raise TaskError(f"{file.name} of {task.folder} must be readable as {reader}; {one_line(error)}") from error
        return read(dataset, split, group)
