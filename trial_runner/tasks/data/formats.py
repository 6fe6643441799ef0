"""Files of rows: which can be read, how texts are separated and encoded, and what ``datasets`` reads of them."""

import codecs
import csv
import gzip
import math
import re
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from trial_runner.errors import TaskError
from trial_runner.huggingface import one_line, quiet_datasets

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
_GZIP = ".gz"
_PART = re.compile(r"-\d{5}-of-\d{5}(-[0-9a-f]+)?")
SAVED = "state.json"
"""What stands in the folder of a dataset that ``save_to_disk`` wrote."""
READABLE = "a .jsonl, .json, .csv, .tsv or .parquet file (.gz too)"
_SEPARATORS = (",", "\t", ";", "|")
_SNIFFED_LINES = 200
_CHUNK_BYTES = 1 << 20
_LINES = (".jsonl", ".ndjson", ".csv", ".tsv")
_LONGEST_LINE_BYTES = 64 << 20
_MOST_COLUMNS = 5_000
_MOST_LEVELS = 500
"""Of values within values; the parser of JSON ends the process at some more."""
_MOST_TIMES_PACKED = 100
"""No texts are packed to a smaller share."""


def reader_of(path: Path) -> str | None:
    """The reader of the ``datasets`` library for a file or a saved dataset; None if it holds no rows."""
    if path.is_dir():
        return "arrow" if (path / SAVED).is_file() else None
    return _READERS.get(_suffix(path))


def has_known_suffix(path: Path) -> bool:
    """Whether a name is that of a file of rows, whatever stands there."""
    return _suffix(path) in _READERS


def stem_of(path: Path) -> str:
    """The name of a file without what says how it is written: ``train`` of ``train-00000-of-00002.jsonl.gz``."""
    name = path.name
    if not path.is_dir():
        name = name[: -len(_GZIP)] if name.lower().endswith(_GZIP) else name
        name = name[: len(name) - len(Path(name).suffix)]
    return _PART.sub("", name)


def is_part(path: Path) -> bool:
    """Whether a file is one of several that make up a split."""
    return _PART.search(path.name) is not None


def check_content(path: Path) -> None:
    """Refuse a file of text that is not UTF-8, and a file that takes far more memory or time than its size tells.

    Raises:
        TaskError: If it is such; of another encoding it says where, and how to convert it.
    """
    if path.is_dir():
        return
    if reader_of(path) == "parquet":
        _check_parquet(path)
    if reader_of(path) not in _OF_TEXT:
        return
    line, decoder, sizes = 1, codecs.getincrementaldecoder("utf-8")(), _Sizes(path)
    with _opened(path) as file:
        begin = file.read(2)
        if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise TaskError(f"{path.name} must be UTF-8 text; it is UTF-16. {_advice(path, 'utf-16')}")
        chunk = begin + file.read(_CHUNK_BYTES)
        while chunk:
            sizes.take(chunk)
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                byte = error.object[error.start]
                raise TaskError(
                    f"{path.name} must be UTF-8 text; got byte 0x{byte:02x} in line {line}. "
                    f"{_advice(path, _single_byte_encoding(path))}"
                ) from None
            line += chunk.count(b"\n")
            chunk = file.read(_CHUNK_BYTES)


def _check_columns(path: Path, count: int) -> None:
    if count > _MOST_COLUMNS:
        raise TaskError(f"{path.name} must have at most {_MOST_COLUMNS:,} columns; it has {count:,}. Leave some out.")


def _check_parquet(path: Path) -> None:
    """Refuse a file of columns that says so much in so few bytes that it cannot be texts; what is damaged passes."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        found = read_metadata(path)
    except (OSError, ArrowException):
        return
    _check_columns(path, found.num_columns)
    if found.num_rows > path.stat().st_size:
        raise _too_large(path, "at most a row for each of its bytes")


def _too_large(path: Path, most: str) -> TaskError:
    return TaskError(f"{path.name} must have {most}; it has more. Write it with less in it.")


class _Sizes:
    """How much a file of text turns out to hold, while it is read."""

    def __init__(self, path: Path) -> None:
        """Begin with nothing."""
        self._path = path
        is_packed = path.name.lower().endswith(_GZIP)
        self._left = _LONGEST_LINE_BYTES + _MOST_TIMES_PACKED * path.stat().st_size if is_packed else math.inf
        self._has_lines, self._is_json = _suffix(path) in _LINES, reader_of(path) == "json"
        self._of_line = self._level = 0
        self._is_text = False
        self._held = b""
        self._names: set[bytes] = set()

    def take(self, chunk: bytes) -> None:
        """Hear of what follows.

        Raises:
            TaskError: If it is too much.
        """
        self._left -= len(chunk)
        if self._left < 0:
            raise _too_large(self._path, f"at most {_MOST_TIMES_PACKED} times its size when it is unpacked")
        if self._has_lines:
            first, *others = map(len, chunk.split(b"\n"))
            lengths = (self._of_line + first, *others)
            self._of_line = lengths[-1]
            if max(lengths) > _LONGEST_LINE_BYTES:
                raise _too_large(self._path, f"lines of at most {_LONGEST_LINE_BYTES:,} bytes")
        if self._is_json:
            self._look_at_values(self._held + chunk)

    def _look_at_values(self, chunk: bytes) -> None:
        """Count brackets outside of texts, and names of values at every level: each makes a column."""
        end = len(chunk) - (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        chunk, self._held = chunk[:end], chunk[end:]
        parts = chunk.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = np.frombuffer(b"".join(parts[self._is_text :: 2]), dtype=np.uint8)
        first = 1 + self._is_text  # of a text that began before, only its end is here
        self._names.update(
            text
            for text, after in zip(parts[first::2], parts[first + 1 :: 2], strict=False)
            if after.lstrip()[:1] == b":"
        )
        if len(self._names) > _MOST_COLUMNS:
            raise _too_large(self._path, f"at most {_MOST_COLUMNS:,} columns")
        self._is_text ^= len(parts) % 2 == 0
        steps = np.isin(outside, list(b"[{")).astype(np.int64) - np.isin(outside, list(b"]}"))
        levels = self._level + np.cumsum(steps)
        if len(levels) and levels.max() > _MOST_LEVELS:
            raise _too_large(self._path, f"at most {_MOST_LEVELS} values within each other")
        self._level = max(0, int(levels[-1])) if len(levels) else self._level


def _single_byte_encoding(path: Path) -> str:
    """Windows' code page where it has signs that are control characters in Latin 1, such as dashes and the euro."""
    with _opened(path) as file:
        windows = bytes(range(0x80, 0xA0))
        has_signs = any(chunk.translate(None, windows) != chunk for chunk in iter(lambda: file.read(_CHUNK_BYTES), b""))
    return "cp1252" if has_signs else "latin1"


def beginning_of(path: Path, folder: Path, most_bytes: int) -> Path | None:
    """The first whole lines of a file of text, as a new file in a folder; None of a file that is no lines.

    Args:
        most_bytes: So many are looked at.
    """
    with _opened(path) as file:
        content = file.read(most_bytes)
    if reader_of(path) == "json" and content.lstrip()[:1] != b"{":
        return None
    taken = folder / (path.name[: -len(_GZIP)] if path.name.lower().endswith(_GZIP) else path.name)
    taken.write_bytes(content[: content.rfind(b"\n") + 1] or content)
    return taken


def options_of(path: Path) -> dict[str, Any]:
    """What the reader of a file must be told.

    Raises:
        TaskError: If the first line of a separated file cannot be names of columns.
    """
    if path.is_dir() or reader_of(path) != "csv":
        return {}
    lines = list(islice(_lines(path), _SNIFFED_LINES))
    separator = "\t" if ".tsv" in path.name.lower() else _separator(lines)
    quoting = csv.QUOTE_NONE if separator == "\t" and not _is_quoted(lines) else csv.QUOTE_MINIMAL
    names = _fields(lines, separator, quoting)
    _check_columns(path, len(names))
    _check_header(path, names)
    # Without keep_default_na, pandas takes the texts "null", "None" and "NA" for missing values.
    return {"keep_default_na": False, "sep": separator, "quoting": quoting}


def _separator(lines: list[str]) -> str:
    """What makes the most names of the first line; a comma if nothing does."""
    return max(_SEPARATORS, key=lambda each: len(_fields(lines, each, csv.QUOTE_MINIMAL)))


def _fields(lines: list[str], separator: str, quoting: int) -> list[str]:
    """The fields of the first row."""
    try:
        return next(csv.reader(lines, delimiter=separator, quoting=quoting), [])  # type: ignore[arg-type]
    except csv.Error:
        return []


def _is_quoted(lines: list[str]) -> bool:
    """Whether quotes of a tab-separated file enclose fields: they come in pairs, or lines without a pair go on."""
    odd = [line for line in lines if line.count('"') % 2]
    return not odd or len({line.count("\t") for line in lines}) > 1


def _check_header(path: Path, names: list[str]) -> None:
    """Refuse a first line that is a row of the data."""
    odd = [name for name in names if _is_number(name) or len(name) > 100 or (not name.strip() and name != names[0])]
    if odd or len(set(names)) < len(names):
        got = ", ".join(repr(name if len(name) <= 30 else f"{name[:29]}…") for name in names[:4])
        raise TaskError(
            f"the first line of {path.name} must name its columns, each once; got {got}. Put a line such as "
            "'text,label' before it."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _lines(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        for number, line in enumerate(file):
            yield line.decode("utf-8-sig" if not number else "utf-8", errors="replace")


def _opened(path: Path) -> BinaryIO:
    try:
        return gzip.open(path) if path.name.lower().endswith(_GZIP) else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise TaskError(f"{path.name} must be readable; {error.strerror}.") from error


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name[: -len(_GZIP)] if name.endswith(_GZIP) else name).suffix


def _advice(path: Path, encoding: str) -> str:
    reading: Mapping[bool, str] = {True: f"gunzip -c {path.name} | iconv -f {encoding}", False: f"iconv -f {encoding}"}
    packed = path.name.lower().endswith(_GZIP)
    return f"If it is {encoding}, convert it: {reading[packed]} -t utf-8{'' if packed else f' {path.name}'} > NEW_FILE"


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
