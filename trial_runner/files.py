"""Files and folders that are written completely or not at all: first under a name that no other process uses."""

import errno
import json
import math
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from trial_runner.errors import ExportError, ExportRequestError
from trial_runner.processes import has_ended, machine_mark, start_of


def default_cache_folder() -> Path:
    """Return ``$DELTASPACE_CACHE``, else ``deltaspace`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``.

    For a user without a home it is in ``/.cache``, where nothing can be kept.
    """
    chosen, base = (os.environ.get(name, "").strip() for name in ("DELTASPACE_CACHE", "XDG_CACHE_HOME"))
    if chosen:
        return expanded(chosen)
    home = expanded("~")
    return (expanded(base) if base else (home if home.is_absolute() else Path("/")) / ".cache") / "deltaspace"


def expanded(path: str | Path) -> Path:
    """Return a path with the home of ``~`` in it; without such a home as it is."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def check_regular(path: Path, *, most_bytes: float = math.inf) -> None:
    """Refuse pipes, devices, links to them, and files that are too large: reading them might wait or never end.

    Raises:
        OSError: If the path is such, or is missing.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it must be a regular file", str(path))
    if found.st_size > most_bytes:
        raise OSError(
            errno.EFBIG, f"it must have at most {int(most_bytes):,} bytes; it has {found.st_size:,}", str(path)
        )


def is_pipe_or_device(path: Path) -> bool:
    """Return whether a path is neither a file nor a folder: reading it might wait, or never end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_all_regular(folder: Path) -> None:
    """Refuse an export that contains something other than regular files and folders, or more tensors than any has.

    Raises:
        ExportError: If it does.
    """
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and not path.is_file():
            raise ExportError(f"an export must have regular files and folders alone; {path} is neither. Remove it.")
        if path.suffix == ".safetensors":
            check_header(path)


_MOST_HEADER_BYTES = 1 << 22
"""Room for the names of 30,000 tensors: of a hundred in each of 256 layers."""


def check_header(path: Path) -> None:
    """Refuse a safetensors file of an export that names more tensors than any configuration has.

    Raises:
        ExportError: If it does.
    """
    with path.open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > _MOST_HEADER_BYTES:
        raise ExportError(
            f"the header of {path} must have at most {_MOST_HEADER_BYTES:,} bytes; got {header:,}. Export it again."
        )


_UNFINISHED = re.compile(
    r"\.(?P<name>.+)\.[0-9a-f]{8}-(?P<machine>[0-9a-f]{12})-(?P<process>\d{1,9})-(?P<start>\d*)\.tmp(-wal|-shm|-journal)?"
)


def unfinished(path: Path) -> Path:
    """Return a temporary name beside a path; temporary files of killed processes for that path are deleted."""
    for left in abandoned(path.parent, path.name):
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    process = os.getpid()
    owner = f"{machine_mark()}-{process}-{start_of(process) or ''}"
    return path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}-{owner}.tmp"


def abandoned(folder: Path, name: str | None = None) -> list[Path]:
    """Return the temporary files that ended processes of this machine left in a folder: for one name, or for any."""
    try:
        found = [(path, _UNFINISHED.fullmatch(path.name)) for path in sorted(folder.iterdir())]
    except (OSError, ValueError):
        return []
    return [
        path
        for path, match in found
        if match is not None
        and name in (None, match["name"])
        and has_ended(match["machine"], int(match["process"]), match["start"])
    ]


def check_is_new(path: Path) -> None:
    """Refuse a path that exists already.

    Raises:
        ExportError: If it exists.
    """
    try:
        path_exists = path.exists() or path.is_symlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ExportRequestError(
            f"an export must go to a place that can be; got a problem with its path: {why}."
        ) from error
    if path_exists:
        raise ExportRequestError(
            f"an export must go to a new place; {path} is there already. Choose another or remove it."
        )


def match_permissions(folder: Path) -> None:
    """Give all files of a folder the read permissions of the folder, within the umask.

    Libraries write weights for their owner alone, and copied files keep the modes of their source.
    """
    mode = folder.stat().st_mode & 0o777
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(mode if path.is_dir() else mode & 0o666)


def _check_whole(folder: Path) -> None:
    """Read all files of weights and facts once more: a disk may lose written data.

    Raises:
        OSError: If one is not whole.
    """
    from safetensors import SafetensorError, safe_open

    for path in sorted(folder.rglob("*")):
        try:
            if path.suffix == ".safetensors":
                with safe_open(path, framework="pt"):
                    pass
            elif path.suffix == ".json":
                json.loads(path.read_bytes())
        except (SafetensorError, ValueError) as error:
            raise OSError(f"{path.name} does not hold what was written") from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``path``; it is renamed to ``path`` at the end, or deleted after an error.

    Raises:
        OSError: If it cannot be written.
    """
    temporary = unfinished(path)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``path``; it is renamed to ``path`` at the end, or deleted after an error.

    Raises:
        ExportError: If ``path`` exists, nothing can be written there, or the written files cannot be read.
    """
    temporary = unfinished(path)
    check_is_new(path)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        check_is_new(path)
        _check_whole(temporary)
        match_permissions(temporary)
        temporary.rename(path)
    except OSError as error:
        why = error.strerror.lower() if error.strerror else error
        raise ExportError(
            f"cannot write the export to {path}: {why}. Choose another place or free some space."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_POINTER = b"version https://git-lfs.github.com/spec/"


def lfs_pointer(path: Path) -> str | None:
    """Return the message about a git-lfs pointer in place of a file; None for any other file."""
    with path.open("rb") as file:
        if file.read(len(_POINTER)) != _POINTER:
            return None
    return f"{path.name} of {path.parent} is a git-lfs pointer, not the file. Run 'git lfs pull' in its folder."


def halved_character(value: object) -> str | None:
    """Return the end of a message about half a surrogate pair in a value; None if there is none."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            code = ord(value[error.start])
            return (
                f"must have whole characters; got \\u{code:04x}, half of one, as of a text that was cut within an "
                "emoji. Cut texts between characters, or delete the half."
            )
        return None
    inner: Iterable[object] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, Mapping):
        inner = (*value, *value.values())
    return next((found for each in inner if (found := halved_character(each))), None)
