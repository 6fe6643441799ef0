"""A folder that is there whole or not at all."""

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
    if path.exists() or path.is_symlink():
        raise ExportError(f"an export must go to a new place; {path} is there already. Choose another or remove it.")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path`` to write into; it becomes ``path`` at the end of the block, or is gone.

    Raises:
        ExportError: If something is at ``path``, or nothing can be written there.
    """
    check_is_new(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        check_is_new(path)
        temporary.rename(path)
    except OSError as error:
        raise ExportError(
            f"an export must be written; got: {error}. Choose another place or free some space."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
