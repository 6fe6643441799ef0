"""Opening files of rows through ``datasets``: whole, or their beginning."""

import gzip
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trial_runner.errors import TaskError
from trial_runner.huggingface import one_line, quiet_datasets
from trial_runner.tasks.data.formats import beginning_of, check_content, options_of, reader_of

if TYPE_CHECKING:
    from datasets import Dataset

_FIRST_ROWS = 20_000
"""Of a large file of columns."""
_NO_ROWS = "corresponds to no data"  # what datasets says of names without rows


@contextmanager
def opened_rows(files: tuple[Path, ...], split: str) -> "Iterator[Dataset]":
    """The rows of a file, or of all parts of one, through ``datasets``, whose own copy is thrown away afterwards.

    Raises:
        TaskError: If they cannot be read.
    """
    first = files[0]
    for file in files:
        if not file.is_dir() and not file.stat().st_size:
            raise TaskError(f"split {split!r} must hold at least one example; {file.name} is empty.")
    reader = reader_of(first) or "json"
    with quiet_datasets(), tempfile.TemporaryDirectory(prefix="dsdata-") as cache:
        from datasets.exceptions import DatasetsError

        where = f"{first.name} of {first.parent}"
        try:
            for file in files:
                check_content(file)
            dataset = _loaded(files, reader, cache)
        except (OSError, EOFError, ValueError, StopIteration, zlib.error, gzip.BadGzipFile, DatasetsError) as error:
            if isinstance(error, TaskError):
                raise
            if _NO_ROWS in str(error) or isinstance(error, StopIteration):  # of blank lines ``datasets`` makes nothing
                raise TaskError(f"split {split!r} must hold at least one example; {first.name} has none.") from error
            raise TaskError(f"{where} must be readable as {reader}; {one_line(error)}") from error
        yield dataset


def _loaded(files: tuple[Path, ...], reader: str, cache: str) -> "Dataset":
    from datasets import Dataset, load_dataset, load_from_disk

    first = files[0]
    if first.is_dir():
        return load_from_disk(str(first))
    if reader == "arrow" and len(files) == 1:
        return Dataset.from_file(str(first))
    options = options_of(first)
    return load_dataset(reader, data_files=[str(file) for file in files], split="train", cache_dir=cache, **options)


@contextmanager
def head_rows(files: tuple[Path, ...], split: str, most_bytes: int) -> "Iterator[tuple[Dataset, bool]]":
    """The rows of the files, or as many from the beginning as are in about so many bytes; and whether they are all.

    Raises:
        TaskError: If they cannot be read.
    """
    first = files[0]
    reader = reader_of(first)
    if sum(0 if file.is_dir() else file.stat().st_size for file in files) <= most_bytes or reader == "arrow":
        with opened_rows(files, split) as dataset:
            yield dataset, True
    elif reader == "parquet":
        yield _first_batch(first), False
    else:
        with tempfile.TemporaryDirectory(prefix="dsdata-") as folder:
            beginning = beginning_of(first, Path(folder), most_bytes)
            with opened_rows((beginning or first,), split) as dataset:
                yield dataset, beginning is None


def _first_batch(file: Path) -> "Dataset":
    from datasets import Dataset
    from pyarrow import ArrowException, Table
    from pyarrow.parquet import ParquetFile

    try:
        batch = next(ParquetFile(file).iter_batches(batch_size=_FIRST_ROWS))
    except (OSError, ArrowException, StopIteration) as error:
        raise TaskError(f"{file.name} of {file.parent} must be readable as parquet; {one_line(error)}") from error
    return Dataset(Table.from_batches([batch]))
