"""A folder that is there whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trial_runner.errors import ExportError


def check_is_new(path: Path) -> None:
    """Refuse a path where something is already.

    Raises:
        ExportError: If it is.
    """
    try:
        is_there = path.exists() or path.is_symlink()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ExportError(f"an export must go to a place that can be; got a problem with its path: {why}.") from error
    if is_there:
        raise ExportError(f"an export must go to a new place; {path} is there already. Choose another or remove it.")


def _open_alike(folder: Path) -> None:
    """Let whoever may read the folder read every file in it; libraries write weights for their owner alone."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)


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
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path`` to write into; it becomes ``path`` at the end of the block, or is gone.

    Raises:
        ExportError: If something is at ``path``, nothing can be written there, or what was written cannot be read.
    """
    check_is_new(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        check_is_new(path)
        _check_whole(temporary)
        _open_alike(temporary)
        temporary.rename(path)
    except OSError as error:
        raise ExportError(
            f"an export must be written; got: {error}. Choose another place or free some space."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
