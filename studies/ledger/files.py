"""Files of a study: their paths in the ledger, ownership, and integrity.

The folder of a study is stored relative to the database file if it is below that file's folder, else as an absolute
path. Its files are stored relative to it. So a folder and a database can be moved together. Paths in a ledger are not
trusted, since its author may be anyone.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from search_space.json_text import read_json_text
from studies.records import ArtefactRecord, StudyRecord


def written_folder(folder: Path, home: Path | None) -> str:
    """Return the folder of a study as the ledger stores it.

    Args:
        folder: Absolute path.
        home: Folder of the database file; None for a server.
    """
    if home is not None and folder.is_relative_to(home.resolve()):
        return str(folder.relative_to(home.resolve()))
    return str(folder)


def found_folder(written: str | None, name: str, home: Path | None) -> Path | None:
    """Return the folder of a study; None if it has none.

    Args:
        written: Path as the ledger stores it.
        name: Name of the study; a folder renamed with it is found before the ledger is updated.
        home: Folder of the database file; None for a server.
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
    """Return a file of a study as the ledger stores it; one outside the folder keeps its path."""
    if folder is not None and Path(path).is_relative_to(folder):
        return str(Path(path).relative_to(folder))
    return path


def found_file(written: str, folder: Path | None) -> str:
    """Return the path of a stored file."""
    return written if folder is None else str(folder / written)


MARKER = "study.json"
"""File in a study's folder that identifies the study."""


EARLIER_NAME = "earlier_name"
"""Key in the marker of a renamed study, by which it is valid before and after the ledger has the new name."""


def identity(study: StudyRecord) -> dict[str, str]:
    """Return the content of the marker of a study's folder."""
    return {"study": study.name, "created_at": study.created_at.isoformat()}


def is_own_file(study: StudyRecord, path: str | Path) -> bool:
    """Return whether a path leads to ``trial-N/attempt-N/FILE`` in a folder that is marked as the study's.

    Links are resolved first, so a path out of the folder through a link is outside it. The file itself may be missing.
    """
    file = Path(path)
    try:
        if not file.is_absolute() or ".." in file.parts:
            return False
        attempt, trial, folder = list(file.resolve().parents)[:3]
        return attempt.name.startswith("attempt-") and trial.name.startswith("trial-") and is_marked(folder, study)
    except (OSError, ValueError, RuntimeError):
        return False


def is_marked(folder: Path, study: StudyRecord) -> bool:
    """Return whether a folder is marked as the study's.

    Raises:
        OSError: If the marker cannot be read.
        ValueError: If it is not JSON.
    """
    marker = folder / MARKER
    if not marker.is_file():
        return False
    marked: object = read_json_text(marker.read_text(encoding="utf-8"))
    if not isinstance(marked, dict):
        return False
    earlier = {name: value for name, value in marked.items() if name != EARLIER_NAME}
    return identity(study) in (earlier, {**earlier, "study": marked.get(EARLIER_NAME)})


def own_folder(study: StudyRecord) -> Path | None:
    """Return the folder that is marked as the study's; None if the recorded one is not marked or missing."""
    try:
        return study.folder if study.folder is not None and is_marked(study.folder, study) else None
    except (OSError, ValueError):
        return None


def path_exists(path: Path) -> bool:
    """Return whether a path exists; any path is allowed."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def broken_files(study: StudyRecord, artefacts: Iterable[ArtefactRecord]) -> Iterator[tuple[ArtefactRecord, str]]:
    """Yield every record whose file is missing or changed, with the problem; files of others are not read."""
    for artefact in artefacts:
        problem = _problem(study, artefact)
        if problem:
            yield artefact, problem


def _problem(study: StudyRecord, artefact: ArtefactRecord) -> str:
    path = Path(artefact.path)
    if not path_exists(path):
        return f"the {artefact.kind} of step {artefact.step} must exist; no file {path}"
    if not is_own_file(study, path) or not path.is_file():
        return f"{path} must be a file in the study's folder; it is not"
    try:
        with path.open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size
    except OSError as error:
        return f"{path} must be readable; it is not: {error.strerror}"
    if (digest, size) != (artefact.sha256, artefact.size_bytes):
        return f"{path} must have sha256 {artefact.sha256}; got {digest}"
    return ""
