"""Studies are renamed, deleted, archived; databases are backed up and merged."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from search_space.checked import Name
from studies.errors import StorageError, WishError
from studies.ledger.copies import Copied
from studies.ledger.engine import StorageAddress
from studies.ledger.files import own_folder
from studies.ledger.ledger import Ledger
from studies.records import StudyRecord
from studies.runtime.artefacts import delete_study_folder, mark_renamed
from trial_runner.files import unfinished

ARCHIVE = "deltaspace.db"
"""The database in the folder of an archive."""

_FOLDERS = "deltaspace-artefacts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What was deleted.

    Attributes:
        studies: Names of the study and of its confirmations.
        left: A line for each file that could not be deleted.
    """

    studies: tuple[str, ...]
    left: tuple[str, ...]


def rename_study(ledger: Ledger, name: str, new: str) -> StudyRecord:
    """Give a study another name, and its folder too where that is free.

    Raises:
        StudiesError: If there is no such study, a launch runs it, or the name is taken or can be none.
    """
    try:
        TypeAdapter(Name).validate_python(new)
    except ValidationError:
        raise WishError(
            f"the name of a study must be of lower-case letters, digits, '.', '_' and '-'; got {new!r}. Choose another."
        ) from None
    study = ledger.study(name)
    if study.folder is not None:
        mark_renamed(study.folder, study, new)
    folder = own_folder(study)
    ledger.rename(study, new)
    if folder is not None and folder.name == name:
        _move(ledger, ledger.study(new), folder, folder.with_name(new))
    return ledger.study(new)


def _move(ledger: Ledger, study: StudyRecord, folder: Path, there: Path) -> None:
    """Rename the folder of a study; where that fails it stays where it is."""
    try:
        if there.exists():
            return
        folder.rename(there)
    except OSError:
        return
    ledger.move_folder(study, there)


def family(ledger: Ledger, name: str) -> list[StudyRecord]:
    """The confirmations of a study, and the study; in the order in which they can be deleted."""
    study = ledger.study(name)
    return [*ledger.confirmations(study.id), study]


def delete_study(ledger: Ledger, name: str) -> Removal:
    """Delete a study with its confirmations, and then their files.

    Raises:
        StudyHeldError: If a launch runs one of them. Nothing was deleted.
    """
    studies = family(ledger, name)
    ledger.remove(studies)
    left = [line for study in studies for line in delete_study_folder(study)]
    return Removal(studies=tuple(study.name for study in studies), left=tuple(left))


def archive_study(ledger: Ledger, name: str, folder: Path) -> Removal:
    """Move a study with its confirmations and files to a folder with a database of its own.

    The copy is complete before anything is deleted. A folder that a database names and that is not the study's own is
    neither copied nor deleted.

    Raises:
        StudyHeldError: If a launch runs one of them. Nothing was deleted.
        StudiesError: If the folder is there already or cannot be written.
    """
    studies = family(ledger, name)
    ledger.check_are_free(studies)
    try:
        folder.mkdir(parents=True)
        own = {study.name: place for study in studies if (place := own_folder(study)) is not None}
        for place in own.values():
            shutil.copytree(place, folder / _FOLDERS / place.name, symlinks=True)
    except OSError as error:
        raise WishError(f"an archive needs a new folder; got: {error}. Choose another.") from error
    with Ledger.open(f"sqlite:///{(folder / ARCHIVE).absolute()}") as archive:
        archive.copy_from(ledger, {study.name for study in studies})
        for study in archive.studies():
            if study.name in own:
                archive.move_folder(study, (folder / _FOLDERS / own[study.name].name).resolve())
    return delete_study(ledger, name)


def back_up(ledger: Ledger, file: Path) -> list[Copied]:
    """Write all studies of a database to a new SQLite file, also while launches write; files of trials are not copied.

    Raises:
        WishError: If the file is there already.
        StorageError: If it cannot be written.
    """
    if file.exists():
        raise WishError(f"a backup needs a new file; {file} is there already. Choose another name.")
    temporary = unfinished(file.absolute())
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


def merge(ledger: Ledger, other_url: str) -> list[Copied]:
    """Take the studies of another database in; their files stay where they are.

    Raises:
        WishError: If the other is this one.
        StorageError: If it cannot be read.
    """
    with Ledger.open(other_url, read_only=True) as other:
        if other.url == ledger.url or _is_same_file(ledger, other_url):
            raise WishError(f"two databases can be merged; got {other.url} twice.")
        copied = ledger.copy_from(other)
    for one in copied:
        if one.is_new and one.name != one.study.name and one.study.folder is not None:
            mark_renamed(one.study.folder, one.study, one.name)
    return copied


def _is_same_file(ledger: Ledger, other_url: str) -> bool:
    other, own = StorageAddress.parse(other_url).file, ledger.file
    return own is not None and other is not None and own.samefile(other)
