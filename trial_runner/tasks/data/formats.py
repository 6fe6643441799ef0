"""Files of rows: which can be read, what their names say, and how a file of text is separated and encoded."""

import codecs
import csv
import gzip
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from trial_runner.errors import TaskError

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


def check_encoding(path: Path) -> None:
    """Refuse a file of text that is not UTF-8.

    Raises:
        TaskError: If it is not; says where, and how to convert it.
    """
    if path.is_dir() or reader_of(path) not in _OF_TEXT:
        return
    line, decoder = 1, codecs.getincrementaldecoder("utf-8")()
    with _opened(path) as file:
        begin = file.read(2)
        if begin in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise TaskError(f"{path.name} must be UTF-8 text; it is UTF-16. {_advice(path, 'utf-16')}")
        chunk = begin + file.read(_CHUNK_BYTES)
        while chunk:
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
    _check_header(path, _fields(lines, separator, quoting))
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
