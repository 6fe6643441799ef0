"""File formats of rows, and their readers."""

import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trial_runner.errors import TaskError
from trial_runner.huggingface import one_line, quiet_datasets
from trial_runner.tasks.data.objects import read_objects
from trial_runner.tasks.data.separated import read_separated
from trial_runner.tasks.data.text_file import (
    GZIP,
    check_columns,
    check_no_pointer,
    is_packed,
    reading_note,
    too_large,
)

if TYPE_CHECKING:
    from datasets import Dataset


_READERS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}
_OF_TEXT = ("json", "csv")
_PART = re.compile(r"-\d{5}-of-\d{5}(-[0-9a-f]+)?")
SAVED = "state.json"
"""File that marks the folder of a dataset written by ``save_to_disk``."""
READABLE = "a .jsonl, .json, .csv, .tsv or .parquet file (.gz too)"


def reader_of(path: Path) -> str | None:
    """Return the ``datasets`` reader of a file or a saved dataset; None for anything else."""
    if path.is_dir():
        return "arrow" if (path / SAVED).is_file() else None
    return _READERS.get(_suffix(path))


def has_data_suffix(path: Path) -> bool:
    """Return whether a name has the suffix of a file of rows; the file itself is not examined."""
    return _suffix(path) in _READERS


def stem_of(path: Path) -> str:
    """Return a file's name without shard number and suffixes: ``train`` of ``train-00000-of-00002.jsonl.gz``."""
    name = path.name
    if not path.is_dir():
        name = name[: -len(GZIP)] if is_packed(path) else name
        name = name[: len(name) - len(Path(name).suffix)]
    return _PART.sub("", name)


def is_part(path: Path) -> bool:
    """Return whether a file's name is that of a shard of a split."""
    return _PART.search(path.name) is not None


def _check_parquet(path: Path) -> None:
    """Check the numbers of columns and rows of a Parquet file against their bounds; a damaged file passes."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        found = read_metadata(path)
    except (OSError, ArrowException):
        return
    check_columns(path, found.num_columns)
    if found.num_rows > path.stat().st_size:
        raise too_large(path, "at most a row for each of its bytes")


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name[: -len(GZIP)] if name.endswith(GZIP) else name).suffix


def reading_notes(files: tuple[Path, ...]) -> tuple[str, ...]:
    """Return a note for each text file that is not UTF-8."""
    notes = [reading_note(file) for file in files if not file.is_dir() and reader_of(file) in _OF_TEXT]
    return tuple(note for note in notes if note is not None)


_FIRST_ROWS = 20_000
"""Number of rows read of a large Parquet file."""


@contextmanager
def opened_rows(files: tuple[Path, ...], split: str, most_bytes: int | None = None) -> "Iterator[Dataset]":
    """Open the rows of a file, or of all its shards; temporary copies on disk are deleted at the end.

    Args:
        files: The file, or its shards in order.
        split: Name of the split in error messages.
        most_bytes: Approximate number of bytes to read from the beginning of each file of lines; None reads all.

    Raises:
        TaskError: If the files cannot be read or have no rows.
    """
    first = files[0]
    for file in files:
        if not file.is_dir() and not file.stat().st_size:
            raise TaskError(f"split {split!r} must hold at least one example; {file.name} is empty.")
        check_no_pointer(file)
    reader = reader_of(first) or "json"
    with quiet_datasets(), tempfile.TemporaryDirectory(prefix="dsdata-") as cache:
        from datasets.exceptions import DatasetsError
        from pyarrow import ArrowException

        try:
            dataset = _loaded(files, reader, cache, most_bytes)
        except (OSError, EOFError, ValueError, zlib.error, DatasetsError, ArrowException) as error:
            if isinstance(error, TaskError):
                raise
            where = f"{first.name} of {first.parent}"
            raise TaskError(f"{where} must be readable as {reader}; {one_line(error)}") from error
        if not len(dataset):
            raise TaskError(f"split {split!r} must hold at least one example; {first.name} has none.")
        yield dataset


def _loaded(files: tuple[Path, ...], reader: str, cache: str, most_bytes: int | None) -> "Dataset":
    from datasets import Dataset, load_dataset, load_from_disk
    from pyarrow import concat_tables

    first = files[0]
    if first.is_dir():
        return load_from_disk(str(first))
    if reader == "arrow" and len(files) == 1:
        return Dataset.from_file(str(first))
    if reader == "csv":
        return Dataset(concat_tables([read_separated(file, most_bytes) for file in files]))
    if reader == "json":
        return Dataset(read_objects(files, most_bytes))
    for file in files:
        _check_parquet(file)
    return load_dataset(reader, data_files=[str(file) for file in files], split="train", cache_dir=cache)


@contextmanager
def head_rows(files: tuple[Path, ...], most_bytes: int) -> "Iterator[tuple[Dataset, bool]]":
    """Yield the rows in about the first ``most_bytes`` bytes of the files, and whether they are all rows.

    Raises:
        TaskError: If the files cannot be read.
    """
    first = files[0]
    reader = reader_of(first)
    is_whole = sum(0 if file.is_dir() else file.stat().st_size for file in files) <= most_bytes or reader == "arrow"
    if reader == "parquet" and not is_whole:
        check_no_pointer(first)
        yield _first_batch(first), False
        return
    with opened_rows(files if is_whole else (first,), "train", None if is_whole else most_bytes) as dataset:
        yield dataset, is_whole


def _first_batch(file: Path) -> "Dataset":
    from datasets import Dataset
    from pyarrow import ArrowException, Table
    from pyarrow.parquet import ParquetFile

    try:
        batch = next(ParquetFile(file).iter_batches(batch_size=_FIRST_ROWS))
    except (OSError, ArrowException, StopIteration) as error:
        raise TaskError(f"{file.name} of {file.parent} must be readable as parquet; {one_line(error)}") from error
    return Dataset(Table.from_batches([batch]))
