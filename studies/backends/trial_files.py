"""Storage of trial files: in the study's folder, or through the keeper where a worker has no access to it.

The keeper is on the launching machine, which has the study's folder. `sees_folder` checks whether a worker on another
node has the same folder, by a file that the launch keeps there.
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
    """Files in the study's folder on this machine."""

    def __init__(self, runner: PackRunner, folder: Path) -> None:
        """Read and write files with a runner."""
        self._runner = runner
        self._folder = folder

    def keep(self, snapshot: Snapshot, *, attempt: int, kind: str) -> ArtefactRecord:
        """Write a snapshot, flushed to disk, and return its record.

        Raises:
            OSError: If it cannot be written.
        """
        folder = make_attempt_folder(self._folder, snapshot.trial, attempt)
        path = self._runner.save(snapshot, folder)
        return describe_file(path, trial=snapshot.trial, kind=kind, step=snapshot.step)

    def find(self, artefact: ArtefactRecord) -> Snapshot | None:
        """Return the snapshot of an earlier attempt; None if the file is missing, changed or unreadable."""
        with suppress(SnapshotError):
            return self._runner.load(Path(artefact.path)) if is_whole(artefact) else None
        return None


class CarriedFiles:
    """Files in the study's folder on another machine; the written content is compared with the sent one."""

    def __init__(self, runner: PackRunner, keeper: "KeeperClient") -> None:
        """Read and write files with a runner, through the keeper."""
        self._runner = runner
        self._keeper = keeper

    def keep(self, snapshot: Snapshot, *, attempt: int, kind: str) -> ArtefactRecord:
        """Write a snapshot and return its record.

        Raises:
            OSError: If it cannot be written here.
            StudiesError: If it cannot be sent.
        """
        with tempfile.TemporaryDirectory(prefix="deltaspace-carried-") as scratch:
            here = self._runner.save(snapshot, Path(scratch))
            content = here.read_bytes()
            there = self._keeper.write_file(snapshot.trial, attempt, here.name, content)
        return describe_content(content, there, trial=snapshot.trial, kind=kind, step=snapshot.step)

    def find(self, artefact: ArtefactRecord) -> Snapshot | None:
        """Return the snapshot of an earlier attempt; None if the file is missing, changed or unreadable."""
        content = self._keeper.read_file(artefact.path)
        if content is None or hashlib.sha256(content).hexdigest() != artefact.sha256:
            return None
        with tempfile.TemporaryDirectory(prefix="deltaspace-carried-") as scratch, suppress(SnapshotError):
            path = Path(scratch, Path(artefact.path).name)
            path.write_bytes(content)
            return self._runner.load(path)
        return None


TrialFiles = FilesInFolder | CarriedFiles
"""Storage of snapshots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderMark:
    """File in the study's folder during a launch, by which other processes recognize that folder.

    Attributes:
        text: Secret content of the file.
    """

    folder: Path
    text: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.folder / f"{LAUNCH_MARK}{self.text[:8]}"

    @contextmanager
    def laid(self) -> Iterator[None]:
        """Keep the file while entered.

        Raises:
            LaunchError: If it cannot be written.
        """
        try:
            self.path.write_text(self.text)
        except OSError as error:
            raise LaunchError(f"cannot write to the study's folder: {error}. Choose another folder.") from error
        try:
            yield
        finally:
            with suppress(OSError):
                self.path.unlink()


def sees_folder(mark: FolderMark) -> bool:
    """Return whether this process can read and write the folder of a launch."""
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
