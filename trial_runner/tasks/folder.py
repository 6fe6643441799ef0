"""Tasks in a local folder: one jsonl, json, csv or parquet file per split."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trial_runner.errors import TaskError
from trial_runner.huggingface import one_line, quiet_datasets
from trial_runner.tasks.raw import RawSplit, RawTask, read_split
from trial_runner.tasks.source import SPLITS, TaskSource

__all__ = ["files_digest", "find_files", "read_folder"]

_READERS = {".jsonl": "json", ".json": "json", ".csv": "csv", ".parquet": "parquet"}
_OTHER_NAMES = {"train": ("train",), "validation": ("validation", "dev", "val"), "test": ("test",)}


def find_files(source: TaskSource) -> dict[str, Path]:
    """The file of each split that the folder has.

    Raises:
        TaskError: If the folder or its train file is missing, or if a split has several files.
    """
    folder = Path(source.name).expanduser()
    if not folder.is_dir():
        raise TaskError(f"a task's folder must exist; there is no folder {source.name}.")
    found: dict[str, Path] = {}
    for split in SPLITS:
        stems = (source.splits[split],) if split in source.splits else _OTHER_NAMES[split]
        files = [
            file
            for file in sorted(folder.iterdir())
            if file.suffix in _READERS and (file.stem in stems or file.name in stems)
        ]
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise TaskError(f"a split must be one file; {source.name} has several for {split}: {names}.")
        if files:
            found[split] = files[0]
        elif split == "train" or split in source.splits:
            held = ", ".join(sorted(file.name for file in folder.iterdir())) or "nothing"
            raise TaskError(
                f"a task's folder must hold {stems[0]}.jsonl, .json, .csv or .parquet; {source.name} holds: {held}."
            )
    return found


def files_digest(files: Mapping[str, Path]) -> str:
    """SHA-256 over the contents of the files and the splits they stand for, as hex."""
    digest = hashlib.sha256()
    for split, file in sorted(files.items()):
        with file.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{split} {_READERS[file.suffix]} {content}\n".encode())
    return digest.hexdigest()


def read_folder(source: TaskSource, files: Mapping[str, Path]) -> RawTask:
    """Read the files of a task.

    Raises:
        TaskError: If a file cannot be read, or its columns or rows are not those of the task.
    """
    return RawTask(splits={split: _read_file(source, split, file) for split, file in files.items()})


def _read_file(source: TaskSource, split: str, file: Path) -> RawSplit:
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
            raise TaskError(f"{file.name} of {source.name} must be readable as {reader}; {one_line(error)}") from error
        return read_split(dataset, source, split)
