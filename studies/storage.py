"""Which storage is meant where none is named."""

import os

DEFAULT_STORAGE = "sqlite:///deltaspace.db"
STORAGE_VARIABLE = "DELTASPACE_STORAGE"


def storage_url(given: str | None = None) -> str:
    """The URL that was given, else that of the environment, else a file in the working directory."""
    return given or os.environ.get(STORAGE_VARIABLE) or DEFAULT_STORAGE
