"""Text files: opening, decoding, bounds on their size."""

import codecs
import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO, TextIO

from trial_runner.errors import TaskError
from trial_runner.files import halved_character, lfs_pointer

GZIP = ".gz"
LONGEST_LINE = 16 << 20
"""Largest number of characters, and of bytes, of a line or a cell."""
MOST_COLUMNS = 5_000
_CHUNK_BYTES = 1 << 20
_MOST_TIMES_PACKED = 100
"""Largest ratio of unpacked to packed size."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_HALF = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
"""Half of a surrogate pair, as written by programs that count UTF-16 units."""
_NOT_CP1252 = re.compile(r"[À-ÿ]{3}|[^\W\d_][¡-©«-¹»-¿×÷][^\W\d_]")
"""Symbols within words and runs of accented letters: signs of text in another code page that is decoded as cp1252."""


def is_packed(path: Path) -> bool:
    """Return whether a file name is that of a gzip file."""
    return path.name.lower().endswith(GZIP)


def is_json(path: Path) -> bool:
    """Return whether a file name is that of a JSON file, perhaps compressed, rather than of JSON lines."""
    return path.name.lower().removesuffix(GZIP).endswith(".json")


def opened(path: Path) -> BinaryIO:
    """Open a file for reading bytes, decompressed.

    Raises:
        TaskError: If it cannot be read.
    """
    try:
        return gzip.open(path) if is_packed(path) else path.open("rb")  # type: ignore[return-value]
    except OSError as error:
        raise TaskError(f"{path.name} must be readable; {error.strerror}.") from error


def chunks(path: Path, most_bytes: int | None = None) -> Iterator[bytes]:
    """Yield the content of a file, or its beginning, in chunks.

    Raises:
        TaskError: If it decompresses to far more than its size, or has too long a line.
    """
    left = LONGEST_LINE + _MOST_TIMES_PACKED * path.stat().st_size
    of_line = taken = 0
    with opened(path) as file:
        while chunk := file.read(_CHUNK_BYTES if most_bytes is None else min(_CHUNK_BYTES, most_bytes - taken)):
            taken += len(chunk)
            if is_packed(path) and taken > left:
                raise too_large(path, f"at most {_MOST_TIMES_PACKED} times its size when it is unpacked")
            if not is_json(path):
                first = max(chunk.find(b"\n"), chunk.find(b"\r"))
                of_line += len(chunk) if first < 0 else first
                if of_line > LONGEST_LINE:
                    raise too_large(path, f"lines of at most {LONGEST_LINE:,} bytes")
                if first >= 0:
                    of_line = len(chunk) - 1 - max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            yield chunk


def check_columns(path: Path, count: int) -> None:
    """Check the number of columns of a file against its bound.

    Raises:
        TaskError: If there are too many.
    """
    if count > MOST_COLUMNS:
        raise TaskError(f"{path.name} must have at most {MOST_COLUMNS:,} columns; it has {count:,}. Leave some out.")


def too_large(path: Path, most: str) -> TaskError:
    """Return the error for a file that exceeds a bound."""
    return TaskError(f"{path.name} must have {most}; it has more. Write it with less in it.")


def check_no_pointer(path: Path) -> None:
    """Check that a file is not a git-lfs pointer.

    Raises:
        TaskError: If it is one.
    """
    if path.is_file() and (pointer := lfs_pointer(path)):
        raise TaskError(pointer)


def encoding_of(path: Path, most_bytes: int | None = None) -> str:
    """Return the encoding of a text file: that of its byte order mark, else UTF-8, else cp1252.

    Raises:
        TaskError: If it is none of them; names the line.
    """
    with opened(path) as file:
        begin = file.read(4)
    marked = next((name for mark, name in _MARKS.items() if begin.startswith(mark)), None)
    line, decoder = 1, codecs.getincrementaldecoder(marked or "utf-8")()
    for chunk in chunks(path, most_bytes):
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            line += error.object[: error.start].count(b"\n")
            if half := _HALF.match(error.object, error.start):
                problem = halved_character(half[0].decode(errors="surrogatepass"))
                raise TaskError(f"line {line} of {path.name} {problem}") from None
            if marked is None and _is_cp1252(path, most_bytes):
                return "cp1252"
            raise TaskError(
                f"{path.name} must be UTF-8 text; got byte 0x{error.object[error.start]:02x} in line {line}. "
                "Save it as UTF-8 in the program that wrote it (spreadsheets: 'CSV UTF-8')."
            ) from None
        line += chunk.count(b"\n")
    return marked or "utf-8"


def _is_cp1252(path: Path, most_bytes: int | None) -> bool:
    """Return whether a file is readable text in cp1252."""
    decoder = codecs.getincrementaldecoder("cp1252")()
    try:
        return not any(_NOT_CP1252.search(decoder.decode(chunk)) for chunk in chunks(path, most_bytes))
    except UnicodeDecodeError:
        return False


@contextmanager
def opened_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a file as text, with line ends unchanged."""
    with opened(path) as file, io.TextIOWrapper(file, encoding=encoding, newline="") as text:
        yield text


def lines_of(text: TextIO, most_bytes: int | None = None) -> Iterator[str]:
    """Yield lines with their ends; with ``most_bytes``, complete lines up to about that size, at least one."""
    taken = 0
    while line := text.readline(LONGEST_LINE + 1):
        taken += len(line)
        if most_bytes is not None and taken > most_bytes and taken > len(line):
            return
        yield line


def reading_note(path: Path) -> str | None:
    """Return the note on the encoding of a text file; None for UTF-8."""
    encoding = encoding_of(path)
    return None if encoding.startswith("utf-8") else f"{path.name}: read as {encoding}, not UTF-8"


def blank_end(names: list[str]) -> int:
    """Return the number of blank names at the end."""
    return len(list(takewhile(lambda name: not name.strip(), reversed(names))))
