"""Where the files of a study lie, which of them are its own, and whether they are as they were recorded.

The folder of a study is written relative to the database file where it lies below that file's folder, else absolutely;
its files are written relative to it. A folder and a database that are moved together need nothing more. Paths in a
ledger are not believed: it may be somebody else's.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from search_space.json_text import read_json_text
from studies.records import ArtefactRecord, StudyRecord


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


MARKER = "study.json"
"""Stands in the folder of a study and says whose it is."""


EARLIER_NAME = "earlier_name"
"""Of the marker of a study that was renamed: it is valid before the ledger has the new name, and after."""


def identity(study: StudyRecord) -> dict[str, str]:
    """What the marker of a study's folder says."""
    return {"study": study.name, "created_at": study.created_at.isoformat()}


def is_own_file(study: StudyRecord, path: str | Path) -> bool:
    """Whether a path leads to ``trial-N/attempt-N/FILE`` in a folder that is marked as the study's.

    Links are followed first, so what leaves the folder through one is not in it. The file itself need not be there.
    """
    given = Path(path)
    try:
        if not given.is_absolute() or ".." in given.parts:
            return False
        attempt, trial, folder = list(given.resolve().parents)[:3]
        return attempt.name.startswith("attempt-") and trial.name.startswith("trial-") and is_marked(folder, study)
    except (OSError, ValueError, RuntimeError):
        return False


def is_marked(folder: Path, study: StudyRecord) -> bool:
    """Whether a folder is marked as the study's.

    Raises:
        OSError: If the marker cannot be read.
        ValueError: If it is no JSON.
    """
    marker = folder / MARKER
    if not marker.is_file():
        return False
    found: object = read_json_text(marker.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        return False
    earlier = {name: value for name, value in found.items() if name != EARLIER_NAME}
    return identity(study) in (earlier, {**earlier, "study": found.get(EARLIER_NAME)})


def own_folder(study: StudyRecord) -> Path | None:
    """The folder that is marked as the study's; None if the one that the ledger names is not, or is gone."""
    try:
        return study.folder if study.folder is not None and is_marked(study.folder, study) else None
    except (OSError, ValueError):
        return None


def is_there(path: Path) -> bool:
    """Whether there is something at a path, whoever has written the path."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def broken_files(study: StudyRecord, artefacts: Iterable[ArtefactRecord]) -> Iterator[tuple[ArtefactRecord, str]]:
    """Every record whose file is gone or another one, and what is wrong; what is not the study's own is not read."""
    for artefact in artefacts:
        problem = _problem(study, artefact)
        if problem:
            yield artefact, problem


def _problem(study: StudyRecord, artefact: ArtefactRecord) -> str:
    path = Path(artefact.path)
    if not is_there(path):
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
