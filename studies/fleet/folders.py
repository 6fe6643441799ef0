"""A folder that lives as long as a launch, for nobody else's eyes; those of launches that were killed are removed.

A launch holds a lock on a file in its folder; the system lets go of it when the process dies. The folder has its name,
which nothing else that deltaspace keeps for a while begins with, only once the lock is held; so one without a lock was
left behind: a process of Ray that was dying has written into it.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "deltaspace-ray-"
_UNNAMED = "new-deltaspace-ray-"
_REMOVALS = 3
_LOCK = "launch.lock"
_FORGOTTEN_SECONDS = 24 * 3600.0
_LONGEST_PARENT = 16  # sockets of Ray lie below it, and their paths are limited to 107 bytes


@contextmanager
def launch_folder() -> Iterator[Path]:
    """A new folder that only this user can enter."""
    usual = Path(tempfile.gettempdir())
    parent = usual if len(str(usual)) <= _LONGEST_PARENT else Path("/tmp")
    for folder in parent.glob(f"{_PREFIX}*"):
        _remove_if_left(folder)
    for folder in parent.glob(f"{_UNNAMED}*"):
        _remove_if_old(folder)
    folder = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=parent))
    try:
        with (folder / _LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            folder = folder.rename(parent / folder.name.replace(_UNNAMED, _PREFIX))
            yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the folder of a launch that ends, and what a process that is dying writes there meanwhile."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _remove_if_old(folder: Path) -> None:
    """Remove a folder of this user whose launch was killed before it had a name."""
    with suppress(OSError):
        owner = folder.lstat()
        is_old = time.time() - owner.st_mtime > _FORGOTTEN_SECONDS
        if is_old and stat.S_ISDIR(owner.st_mode) and owner.st_uid == os.geteuid():
            shutil.rmtree(folder, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    """Remove the folder of a launch of this user that has ended; whatever else bears such a name is left alone."""
    with suppress(OSError):
        owner = folder.lstat()
        if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.geteuid():
            return
        if not (folder / _LOCK).is_symlink() and not (folder / _LOCK).exists():
            shutil.rmtree(folder, ignore_errors=True)
            return
        # opened without waiting: a pipe in its place would wait for a writer
        lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(lock).st_mode):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
