"""A folder that lives as long as a launch, for nobody else's eyes; those of launches that were killed are removed.

A launch holds a lock on its folder itself; the system lets go of it when the process dies. Programs that tidy up
``/tmp`` by age leave a locked folder alone, and nothing that is removed from it or laid there touches the lock. The
folder has its name, which nothing else that deltaspace keeps for a while begins with, only once the lock is held; so
one without a lock was left behind.
"""

import fcntl
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# not deltaspace-: what bears that name is removed by launches of earlier releases, unless it has a lock as theirs
_PREFIX = "dslaunch-"
_UNNAMED = "new-dslaunch-"
_REMOVALS = 3
_FORGOTTEN_SECONDS = 24 * 3600.0
_LONGEST_PARENT = 20  # sockets of Ray lie below it, and their paths are limited to 107 bytes
_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def launch_folder() -> Iterator[Path]:
    """A new folder that only this user can enter."""
    usual = Path(tempfile.gettempdir())
    parent = usual if len(str(usual)) <= _LONGEST_PARENT else Path("/tmp")
    for folder in parent.glob(f"{_PREFIX}*"):
        _remove_if_left(folder)
    for folder in parent.glob(f"{_UNNAMED}*"):
        _remove_if_left(folder, older_than_seconds=_FORGOTTEN_SECONDS)
    folder = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=parent))
    lock = os.open(folder, _AS_FOLDER)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = folder.rename(parent / folder.name.replace(_UNNAMED, _PREFIX))
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


def _remove(folder: Path) -> None:
    """Remove the folder of a launch that ends, and what a process that is dying writes there meanwhile."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def _remove_if_left(folder: Path, older_than_seconds: float = -math.inf) -> None:
    """Remove the folder of a launch of this user that has ended; whatever else bears such a name is left alone."""
    with suppress(OSError):
        lock = os.open(folder, _AS_FOLDER)
        try:
            found = os.fstat(lock)
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime >= older_than_seconds:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
