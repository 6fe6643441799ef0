"""Prepared tasks of a run of tests, in a folder of its own: each is made once, by the process that needs it first.

Nothing of the user's is read, so that a run finds what a fresh machine finds, and nothing is left behind.
"""

import os
import shutil
import tempfile
from pathlib import Path

CACHE = "DELTASPACE_CACHE"

_made: list[Path] = []


def begin() -> None:
    """Make the folder, unless there is one: processes that the run starts inherit it."""
    if CACHE not in os.environ:
        _made.append(Path(tempfile.mkdtemp(prefix="tests-of-deltaspace-")))
        os.environ[CACHE] = str(_made[-1])


def end() -> None:
    """Remove it, in the process that made it."""
    while _made:
        shutil.rmtree(_made.pop(), ignore_errors=True)
