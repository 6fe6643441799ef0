"""Which files are a study's own. Paths in a ledger are not believed: it may be somebody else's."""

from pathlib import Path

from search_space.json_text import read_json_text
from studies.records import StudyRecord

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
