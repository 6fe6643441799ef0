"""Files of a study: their folder, checks of their content, and removal of unrecorded ones."""

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

from studies.errors import LaunchError
from studies.ledger.files import EARLIER_NAME, MARKER, identity, is_marked, is_own_file, own_folder, path_exists
from studies.records import ArtefactRecord, AttemptRecord, StudyRecord
from trial_runner.files import unfinished

LAUNCH_MARK = ".launch-"
"""Prefix of files that a launch on a cluster keeps in the study's folder while it runs."""


def study_folder(root: Path, study: StudyRecord) -> Path:
    """Return the study's own folder: the recorded one if it exists, else a new marked one below ``root``.

    Two databases may hold studies of one name; the second gets a folder ``NAME-2``, and so on.

    Raises:
        LaunchError: If the folder cannot be written.
    """
    attempt = 1
    try:
        if study.folder is not None and is_marked(study.folder, study):
            return study.folder
        root = root.resolve()
        while True:
            folder = root / (study.name if attempt == 1 else f"{study.name}-{attempt}")
            folder.mkdir(parents=True, exist_ok=True)
            if not any(folder.iterdir()):
                _write_whole(folder / MARKER, json.dumps(identity(study)))
            if is_marked(folder, study):
                return folder
            attempt += 1
    except (OSError, ValueError) as error:
        raise LaunchError(f"cannot write to the folder of artefacts: {error}. Choose another folder.") from error


def mark_renamed(folder: Path, study: StudyRecord, name: str) -> None:
    """Mark the folder of a study with its new name as well.

    Raises:
        LaunchError: If the folder cannot be written.
    """
    try:
        if is_marked(folder, study):
            _write_whole(folder / MARKER, json.dumps({**identity(study), "study": name, EARLIER_NAME: study.name}))
    except (OSError, ValueError) as error:
        raise LaunchError(f"cannot write to the study's folder: {error}. Nothing was changed.") from error


def delete_study_folder(study: StudyRecord) -> list[str]:
    """Delete the files of a deleted study; files of others stay.

    Returns:
        A line for each path that cannot be deleted.
    """
    folder, refused = study.folder, []
    try:
        if folder is None or not is_marked(folder, study):
            if folder is not None and folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()  # an earlier deletion was killed between the marker and the folder
            return []
        for place in sorted(folder.glob("trial-*")):
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place, ignore_errors=True)
                refused += [f"{place} cannot be deleted as a whole"] if place.exists() else []
        if not refused:
            for left in folder.glob(f"{LAUNCH_MARK}*"):
                left.unlink()
            (folder / MARKER).unlink()
            folder.rmdir()
    except (OSError, ValueError) as error:
        refused.append(f"{folder} cannot be deleted: {error}")
    return refused


def _write_whole(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = unfinished(path.parent)  # not in the folder, which would not be empty for another launch
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def attempt_folder(folder: Path, trial: int, attempt: int) -> Path:
    """Return the folder of an attempt; each attempt has its own, so that none overwrites another's files."""
    return folder / f"trial-{trial}" / f"attempt-{attempt}"


def make_attempt_folder(folder: Path, trial: int, attempt: int) -> Path:
    """Create the folder of an attempt and return it.

    Raises:
        LaunchError: If a link leads out of the study's folder; nothing is written through it.
        OSError: If it cannot be created.
    """
    path = attempt_folder(folder, trial, attempt)
    path.mkdir(parents=True, exist_ok=True)
    if path.resolve() != attempt_folder(folder.resolve(), trial, attempt):
        raise LaunchError(f"{path} must be a folder; a link leads to {path.resolve()}. Remove the link.")
    return path


def write_file(folder: Path, trial: int, attempt: int, name: str, content: bytes) -> Path:
    """Write a file of an attempt on another machine, flushed to disk and read back; return its path.

    Raises:
        LaunchError: If it cannot be written.
    """
    try:
        if name in ("", "..") or Path(name).name != name:
            raise OSError(f"{name!r} is no name of a file")
        place = make_attempt_folder(folder, trial, attempt)
        temporary = place / f"{name}.{uuid.uuid4().hex[:8]}.tmp"
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if temporary.read_bytes() != content:
            raise OSError(f"{temporary} does not hold what was written")
        return temporary.replace(place / name)
    except OSError as error:
        raise LaunchError(f"cannot write a snapshot: {error}. Free some space, or choose another folder.") from error


def read_file(folder: Path, path: str) -> bytes | None:
    """Return the content of a study's file; None if it is unreadable, outside the folder, or no regular file."""
    file = Path(path)
    try:
        is_inside = file.is_absolute() and file.resolve().is_relative_to(folder.resolve())
        return file.read_bytes() if is_inside and file.is_file() else None
    except (OSError, ValueError):
        return None


def describe_file(path: Path, *, trial: int, kind: str, step: int) -> ArtefactRecord:
    """Return the record of a file that was just written."""
    return describe_content(path.read_bytes(), path, trial=trial, kind=kind, step=step)


def describe_content(content: bytes, path: Path | str, *, trial: int, kind: str, step: int) -> ArtefactRecord:
    """Return the record of a file with this content, here or on another machine."""
    return ArtefactRecord(
        trial=trial,
        kind=kind,
        step=step,
        path=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
    )


def is_whole(artefact: ArtefactRecord) -> bool:
    """Return whether the file exists with its recorded content; a pipe at its path is not waited for."""
    path = Path(artefact.path)
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError:
        return False
    return hashlib.sha256(content).hexdigest() == artefact.sha256


def delete_files(paths: Iterable[str | Path]) -> dict[Path, str]:
    """Delete files, missing ones included, and the folders that become empty; never raises.

    Returns:
        Reasons by path of the files that cannot be deleted.
    """
    refused: dict[Path, str] = {}
    for path in map(Path, paths):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            refused[path] = error.strerror or str(error)
            continue
        for folder in (path.parent, path.parent.parent):
            if folder.name.startswith(("attempt-", "trial-")):
                try:
                    folder.rmdir()
                except OSError:
                    break
    return refused


def delete_own_files(study: StudyRecord, paths: Collection[str]) -> dict[Path, str]:
    """Delete files that a ledger names with `delete_files`; files outside the study's folder are left."""
    own = {path for path in paths if is_own_file(study, path)}
    foreign = [path for path in map(Path, sorted(set(paths) - own)) if path_exists(path)]
    return delete_files(own) | dict.fromkeys(foreign, "it lies outside the study's folder, and is not read either")


def remove_orphans(folder: Path, kept: Iterable[ArtefactRecord], ended: Iterable[AttemptRecord]) -> dict[Path, str]:
    """Delete the files of ended attempts that no record names.

    An ended attempt writes no more files, so no file of a live worker is deleted, not even of another launch.

    Args:
        folder: The study's own folder.
        kept: Every artefact of the study, read after ``ended``.
        ended: Ended attempts; files of other attempts are ignored.

    Returns:
        Reasons by path of the files that cannot be deleted.
    """
    named = {Path(artefact.path) for artefact in kept}
    orphans = [
        file
        for attempt in ended
        for file in attempt_folder(folder, attempt.trial, attempt.attempt).glob("*")
        if file not in named and not _is_folder(file) and file.parent.resolve().is_relative_to(folder.resolve())
    ]
    return delete_files(orphans)


def unnamed_paths(study: StudyRecord, kept: Iterable[ArtefactRecord]) -> list[Path]:
    """Return the paths in a study's own folder that no record names; the marker and hidden files are left out."""
    folder, found = own_folder(study), []
    named = {Path(artefact.path) for artefact in kept} | {folder / MARKER if folder is not None else folder}
    for place, folders, files in os.walk(folder or os.devnull):
        paths = [Path(place, name) for name in folders if not name.startswith(("trial-", "attempt-"))]
        paths += [Path(place, name) for name in folders if Path(place, name).is_symlink()]
        folders[:] = [name for name in folders if Path(place, name) not in paths]
        found += [path for path in (*paths, *(Path(place, name) for name in files)) if path.name[0] != "."]
    return sorted({*found} - named)


def _is_folder(path: Path) -> bool:
    """Return whether a path is certainly a folder; links are not."""
    try:
        return path.is_dir() and not path.is_symlink()
    except OSError:
        return False
