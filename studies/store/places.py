"""How a ledger writes where the files of a study lie, so that they are found again when all of it has moved.

The folder of a study is written relative to the database file where it lies below that file's folder, else absolutely;
its files are written relative to it. A folder and a database that are moved together need nothing more. What a path
leads to is another question: see `studies.store.belonging`.
"""

from pathlib import Path


def written_folder(folder: Path, home: Path | None) -> str:
    """The folder of a study as the ledger has it.

    Args:
        folder: Absolute.
        home: The folder of the database file; None of a server.
    """
    if home is not None and folder.is_relative_to(home.resolve()):
        return str(folder.relative_to(home.resolve()))
    return str(folder)


def found_folder(written: str | None, name: str, home: Path | None) -> Path | None:
    """Where the folder of a study lies; None while it has none.

    Args:
        written: As the ledger has it.
        name: Of the study: a folder that is renamed with it is found before the ledger knows.
        home: As of `written_folder`.
    """
    if written is None:
        return None
    folder = Path(written) if home is None else home.resolve() / written
    try:
        renamed = folder.with_name(name)
        return renamed if renamed.is_dir() and not folder.is_dir() else folder
    except (OSError, ValueError):
        return folder


def written_file(path: str, folder: Path | None) -> str:
    """A file of a study as the ledger has it; one that lies elsewhere keeps its path."""
    if folder is not None and Path(path).is_relative_to(folder):
        return str(Path(path).relative_to(folder))
    return path


def found_file(written: str, folder: Path | None) -> str:
    """Where a file of a study lies, if it is there."""
    return written if folder is None else str(folder / written)
