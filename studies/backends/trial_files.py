"""Where a worker keeps the files of its trials: in the study's folder, or through the keeper where it cannot see that.

The keeper stays on the launching machine, which has the study's folder. A worker on another node may see the same
folder (a shared disk) or not: `sees_folder` tells, by a file that the launch has left there.
"""

import hashlib
import os
import secrets
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from studies.errors import LaunchError
from studies.records import ArtefactRecord
from studies.runtime.artefacts import LAUNCH_MARK, describe_content, describe_file, is_whole, make_attempt_folder
from trial_runner.errors import SnapshotError
from trial_runner.requests import PackRunner, Snapshot

if TYPE_CHECKING:
    from studies.backends.keeper_actor import KeeperClient


class FilesInFolder:
    """Files straight in the study's folder, which this machine sees."""

    def __init__(self, runner: PackRunner, folder: Path) -> None:
        """Write and read with a runner."""
        self._runner = runner
        self._folder = folder

    def keep(self, snapshot: Snapshot, *, attempt: int, kind: str) -> ArtefactRecord:
        """Write a snapshot, flushed to disk, and describe the file.

        Raises:
            OSError: If it cannot be written.
        """
        folder = make_attempt_folder(self._folder, snapshot.trial, attempt)
        path = self._runner.save(snapshot, folder)
        return describe_file(path, trial=snapshot.trial, kind=kind, step=snapshot.step)

    def find(self, artefact: ArtefactRecord) -> Snapshot | None:
        """What an earlier attempt has kept; None if it is not there as it was recorded, or cannot be read."""
        with suppress(SnapshotError):
            return self._runner.load(Path(artefact.path)) if is_whole(artefact) else None
        return None


class CarriedFiles:
    """Files in the study's folder on another machine; what is written there is compared with what was sent."""

    def __init__(self, runner: PackRunner, keeper: "KeeperClient") -> None:
        """Write and read with a runner, through the keeper."""
        self._runner = runner
        self._keeper = keeper

    def keep(self, snapshot: Snapshot, *, attempt: int, kind: str) -> ArtefactRecord:
        """Write a snapshot, and describe the file.

        Raises:
            OSError: If it cannot be written here.
            StudiesError: If it cannot be brought to where it is kept.
        """
        with tempfile.TemporaryDirectory(prefix="deltaspace-carried-") as scratch:
            here = self._runner.save(snapshot, Path(scratch))
            content = here.read_bytes()
            there = self._keeper.take_file(snapshot.trial, attempt, here.name, content)
        return describe_content(content, there, trial=snapshot.trial, kind=kind, step=snapshot.step)

    def find(self, artefact: ArtefactRecord) -> Snapshot | None:
        """What an earlier attempt has kept; None if it is not there as it was recorded, or cannot be read."""
        content = self._keeper.give_file(artefact.path)
        if content is None or hashlib.sha256(content).hexdigest() != artefact.sha256:
            return None
        with tempfile.TemporaryDirectory(prefix="deltaspace-carried-") as scratch, suppress(SnapshotError):
            path = Path(scratch, Path(artefact.path).name)
            path.write_bytes(content)
            return self._runner.load(path)
        return None


TrialFiles = FilesInFolder | CarriedFiles
"""Keeps snapshots, and finds them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderMark:
    """A file in the study's folder for as long as a launch lasts: who reads it there sees that folder, not its like.

    Attributes:
        text: What it says; nobody can guess it.
    """

    folder: Path
    text: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def path(self) -> Path:
        """Of the file."""
        return self.folder / f"{LAUNCH_MARK}{self.text[:8]}"

    @contextmanager
    def laid(self) -> Iterator[None]:
        """While entered, the file is there.

        Raises:
            LaunchError: If it cannot be written.
        """
        try:
            self.path.write_text(self.text)
        except OSError as error:
            raise LaunchError(f"the study's folder must be writable; got: {error}. Choose another folder.") from error
        try:
            yield
        finally:
            with suppress(OSError):
                self.path.unlink()


def sees_folder(mark: FolderMark) -> bool:
    """Whether this process sees the folder of a launch, and may write into it."""
    probe = mark.folder / f"{LAUNCH_MARK}{uuid.uuid4().hex[:8]}"
    try:
        if mark.path.read_text() != mark.text:
            return False
        with probe.open("x") as file:
            os.fsync(file.fileno())
        probe.unlink()
    except OSError:
        return False
    return True
