"""What is there whole or not at all: written under another name first, which no other process has."""

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

from trial_runner.errors import ExportError, ExportWishError
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
    """Refuse what reading would wait for, or never end with: pipes, devices, links to them, files that are too large.

    Raises:
        OSError: If it is such, or is not there.
    """
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it must be a regular file", str(path))
    if found.st_size > most_bytes:
        raise OSError(
            errno.EFBIG, f"it must have at most {int(most_bytes):,} bytes; it has {found.st_size:,}", str(path)
        )


def is_pipe_or_device(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder: reading it might wait, or never end."""
    return path.exists() and not path.is_file() and not path.is_dir()


def check_all_regular(folder: Path) -> None:
    """Refuse an export with something in it that is neither a regular file nor a folder.

    Raises:
        ExportError: If it has such.
    """
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and not path.is_file():
            raise ExportError(f"an export must have regular files and folders alone; {path} is neither. Remove it.")


_UNFINISHED = re.compile(
    r"\.(?P<name>.+)\.[0-9a-f]{8}-(?P<machine>[0-9a-f]{12})-(?P<process>\d{1,9})-(?P<start>\d*)\.tmp(-wal|-shm|-journal)?"
)


def unfinished(path: Path) -> Path:
    """A name beside a path for what is not whole yet; what a process that was killed left there for it is deleted."""
    for left in abandoned(path.parent, path.name):
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    process = os.getpid()
    owner = f"{machine_mark()}-{process}-{start_of(process) or ''}"
    return path.parent / f".{path.name}.{uuid.uuid4().hex[:8]}-{owner}.tmp"


def abandoned(folder: Path, name: str | None = None) -> list[Path]:
    """What processes of this machine that have ended left unfinished in a folder: for one name, or for any."""
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
    """Refuse a path where something is already.

    Raises:
        ExportError: If it is.
    """
    try:
        path_exists = path.exists() or path.is_symlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ExportWishError(
            f"an export must go to a place that can be; got a problem with its path: {why}."
        ) from error
    if path_exists:
        raise ExportWishError(
            f"an export must go to a new place; {path} is there already. Choose another or remove it."
        )


def open_alike(folder: Path) -> None:
    """Let whoever may read a folder read all that is in it, as the umask wants it.

    Libraries write weights for their owner alone, and what is copied has the modes of where it was.
    """
    mode = folder.stat().st_mode & 0o777
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(mode if path.is_dir() else mode & 0o666)


def _check_whole(folder: Path) -> None:
    """Read every file of weights and of facts once more, for a disk may lose what it took.

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
    """A name beside ``path`` to write to; it becomes ``path`` at the end of the block, or is gone and nothing else is.

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
    """An empty folder beside ``path`` to write into; it becomes ``path`` at the end of the block, or is gone.

    Raises:
        ExportError: If something is at ``path``, nothing can be written there, or what was written cannot be read.
    """
    temporary = unfinished(path)
    check_is_new(path)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        check_is_new(path)
        _check_whole(temporary)
        open_alike(temporary)
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
