"""Maintenance of studies and databases: rename, delete, archive, back up, merge."""

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from studies.errors import InvalidRequestError, StorageError
from studies.ledger.copies import Copied
from studies.ledger.engine import StorageAddress
from studies.ledger.files import own_folder
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord
from studies.records.study import check_name
from studies.runtime.artefacts import delete_study_folder, mark_renamed
from studies.runtime.workload import hold_study
from trial_runner.files import abandoned, unfinished

ARCHIVE = "deltaspace.db"
"""Name of the database in the folder of an archive."""

_FOLDERS = "deltaspace-artefacts"
_HOLD_SECONDS = 600.0
"""Seconds for which other machines leave a study alone while it is deleted; this machine checks the process instead."""


Removal = tuple[list[str], list[str]]
"""Names of the deleted study and of its confirmations; and one line for each file that could not be deleted."""


def rename_study(ledger: Ledger, name: str, new: str) -> StudyRecord:
    """Rename a study, and its folder if the new path is free.

    Raises:
        StudiesError: If there is no such study, a launch runs it, or the new name is taken or invalid.
    """
    check_name(new, "a study", InvalidRequestError)
    study = _half_renamed(ledger, name, new) or ledger.study(name)
    if study.name == name:
        if study.folder is not None:
            mark_renamed(study.folder, study, new)
        ledger.rename(study, new)
        study = ledger.study(new)
    folder = own_folder(study)
    if folder is not None:
        _move(ledger, study, folder, folder.with_name(new) if folder.name == name else folder)
    return ledger.study(new)


def _half_renamed(ledger: Ledger, name: str, new: str) -> StudyRecord | None:
    """Return the study of the new name if it was renamed by a process that was killed before it ended."""
    studies = {study.name: study for study in ledger.studies()}
    study = studies.get(new)
    is_half = study is not None and name not in studies and own_folder(replace(study, name=name)) is not None
    return study if is_half else None


def _move(ledger: Ledger, study: StudyRecord, folder: Path, there: Path) -> None:
    """Rename the folder of a study, or leave it where it is if that fails."""
    try:
        if folder != there:
            if there.exists():
                return
            folder.rename(there)
    except OSError:
        return
    ledger.move_folder(study, there)


def family(ledger: Ledger, name: str) -> list[StudyRecord]:
    """Return the confirmations of a study and the study, in the order of deletion."""
    study = ledger.study(name)
    return [*ledger.confirmations(study.id), study]


def delete_study(ledger: Ledger, name: str, archive: Path | None = None) -> Removal:
    """Delete a study and its confirmations, files first, after writing an archive if one is wanted.

    The study stays in the ledger as long as any of its files are left, so a deletion that was killed can be run again.
    A recorded folder that is not the study's own is neither archived nor deleted.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        archive: New folder for an archive, which is complete before anything is deleted; or a complete archive of these
            studies. None for no archive.

    Raises:
        StudyHeldError: If a launch runs one of them. Nothing was deleted.
        StudiesError: If the archive cannot be written, or its path is taken.
    """
    studies = family(ledger, name)
    with ExitStack() as stack:
        held = [hold_study(study, ledger, seconds=_HOLD_SECONDS, instead_of=None) for study in studies]
        launches = [stack.enter_context(one) for one in held]
        if archive is not None and not _is_archive(ledger, studies, archive):
            _write_archive(ledger, studies, archive)
        left = [line for study in studies for line in delete_study_folder(study)]
        ledger.remove(studies, launches)
        return [study.name for study in studies], left


def _write_archive(ledger: Ledger, studies: Sequence[StudyRecord], folder: Path) -> None:
    """Write an archive under a temporary name and move it to its folder when it is complete."""
    own = {study.name: place for study in studies if (place := own_folder(study)) is not None}
    temporary = unfinished(folder.absolute())
    try:
        if folder.exists():
            raise OSError(f"{folder} is there already")
        temporary.mkdir(parents=True)
        for place in own.values():
            _relink(shutil.copytree(place, temporary / _FOLDERS / place.name, symlinks=True), place)
        with Ledger.open(f"sqlite:///{temporary / ARCHIVE}") as archive:
            archive.copy_from(ledger, {study.name for study in studies})
            for study in archive.studies():
                if study.name in own:
                    archive.move_folder(study, (temporary / _FOLDERS / own[study.name].name).resolve())
        temporary.rename(folder)
    except OSError as error:
        raise InvalidRequestError(f"an archive needs a new folder; got: {error}. Choose another.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _relink(copy: Path, folder: Path) -> None:
    """Let the links of a copy lead to its own files where those of the folder led to the folder's."""
    for link in [path for path in copy.rglob("*") if path.is_symlink()]:
        target, place = link.readlink(), folder / link.relative_to(copy)
        if target.is_absolute() and target.is_relative_to(folder):
            link.unlink()
            link.symlink_to(os.path.relpath(target, place.parent))


def _is_archive(ledger: Ledger, studies: Sequence[StudyRecord], folder: Path) -> bool:
    """Return whether a folder is a complete archive of the studies as they are."""
    if not (folder / ARCHIVE).is_file():
        return False
    with Ledger.open(f"sqlite:///{(folder / ARCHIVE).absolute()}", read_only=True) as archive:
        copies = {study.created_at: study for study in archive.studies()}
        return all(
            study.created_at in copies and _facts(archive, copies[study.created_at]) == _facts(ledger, study)
            for study in studies
        )


def _facts(ledger: Ledger, study: StudyRecord) -> tuple[object, ...]:
    """Return the records of a study without keys and paths."""
    return (
        study.name,
        study.epoch,
        ledger.trials(study.id),
        ledger.attempts(study.id),
        ledger.readings(study.id),
        ledger.events(study.id),
        [replace(artefact, path=Path(artefact.path).name) for artefact in ledger.artefacts(study.id)],
    )


def leftovers(ledger: Ledger, study: StudyRecord) -> list[Path]:
    """Return the unfinished files that killed commands left beside the database and in the study's folder."""
    own, home = own_folder(study), ledger.database.address.home
    folders = {home, *(() if own is None else (own.parent, own, *own.glob("trial-*/attempt-*")))} - {None}
    return sorted(path for folder in folders if folder is not None for path in abandoned(folder))


def back_up(ledger: Ledger, file: Path) -> list[Copied]:
    """Write all studies of a database to a new SQLite file, also while launches write; without the files of trials.

    Raises:
        InvalidRequestError: If the file exists.
        StorageError: If it cannot be written.
    """
    temporary = unfinished(file.absolute())
    if file.exists():
        raise InvalidRequestError(f"a backup needs a new file; {file} is there already. Choose another name.")
    try:
        with Ledger.open(f"sqlite:///{temporary}") as backup:
            copied = backup.copy_from(ledger)
        os.link(temporary, file)
    except OSError as error:
        raise StorageError(f"a backup needs a file that can be written; got: {error}.") from error
    finally:
        for end in ("", "-wal", "-shm"):
            temporary.with_name(temporary.name + end).unlink(missing_ok=True)
    return copied


def merge_studies(ledger: Ledger, other_url: str) -> list[Copied]:
    """Copy the studies of another database into this one; their files stay where they are.

    Raises:
        InvalidRequestError: If both are the same database.
        StorageError: If the other cannot be read.
    """
    with Ledger.open(other_url, read_only=True) as other:
        file, own = StorageAddress.parse(other_url).file, ledger.database.address.file
        if other.url == ledger.url or (own is not None and file is not None and own.samefile(file)):
            raise InvalidRequestError(f"two databases can be merged; got {other.url} twice.")
        copied = ledger.copy_from(other)
    for one in copied:
        if one.name != one.study.name and one.study.folder is not None:  # also of a merge that was killed before
            mark_renamed(one.study.folder, one.study, one.name)
    return copied
