"""Default storage."""

import os
from pathlib import Path

DEFAULT_STORAGE = "sqlite:///deltaspace.db"
STORAGE_VARIABLE = "DELTASPACE_STORAGE"


def storage_url(given: str | None = None) -> str:
    """Return the given URL, else that of the environment, else that of a file in the working directory.

    An existing file may be given by its path. Surrounding blanks and line ends are ignored.
    """
    chosen = next(filter(None, (text.strip() for text in (given or "", os.environ.get(STORAGE_VARIABLE, "")))), None)
    chosen = chosen or DEFAULT_STORAGE
    return f"sqlite:///{chosen}" if "://" not in chosen and Path(chosen).is_file() else chosen
