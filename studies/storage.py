"""Which storage is meant where none is named."""

import os
from pathlib import Path

DEFAULT_STORAGE = "sqlite:///deltaspace.db"
STORAGE_VARIABLE = "DELTASPACE_STORAGE"


def storage_url(given: str | None = None) -> str:
    """The URL that was given, else that of the environment, else a file in the working directory.

    A file that is there may be given by its path. Blanks and line ends around it do not count.
    """
    chosen = next(filter(None, (text.strip() for text in (given or "", os.environ.get(STORAGE_VARIABLE, "")))), None)
    chosen = chosen or DEFAULT_STORAGE
    return f"sqlite:///{chosen}" if "://" not in chosen and Path(chosen).is_file() else chosen
