"""Files of trials on nodes without the study's folder: they pass through the keeper unchanged."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.trivial_runner import TrivialRunner

from studies.backends.trial_files import CarriedFiles, FilesInFolder, FolderMark, TrialFiles, sees_folder
from studies.errors import LaunchError
from studies.runtime.artefacts import read_file, write_file
from trial_runner.requests import Snapshot

SNAPSHOT = Snapshot(trial=3, step=8, facts={"state": 5})


class FarFolder:
    """The study's folder on another machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_file(self, trial: int, attempt: int, name: str, content: bytes) -> str:
        return str(write_file(self.folder, trial, attempt, name, content))

    def read_file(self, path: str) -> bytes | None:
        return read_file(self.folder, path)


@pytest.fixture(params=["seen", "carried"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> TrialFiles:
    if request.param == "seen":
        return FilesInFolder(TrivialRunner(), tmp_path)
    return CarriedFiles(TrivialRunner(), FarFolder(tmp_path))


def test_kept_file_is_found_in_the_folder_of_its_attempt(files, tmp_path):
    kept = files.keep(SNAPSHOT, attempt=2, kind="snapshot")
    assert Path(kept.path).parent == tmp_path / "trial-3" / "attempt-2"
    assert files.find(kept) == SNAPSHOT
    assert [path.name for path in Path(kept.path).parent.iterdir()] == [Path(kept.path).name]


def test_missing_changed_or_damaged_file_is_not_found(files):
    kept = files.keep(SNAPSHOT, attempt=1, kind="delta")
    assert files.find(replace(kept, sha256="0" * 64)) is None
    Path(kept.path).write_text("{")
    assert files.find(kept) is None
    Path(kept.path).unlink()
    assert files.find(kept) is None


@pytest.mark.parametrize("name", ["../x", "a/b", "", "/etc/x", ".."])
def test_no_name_leads_out_of_the_folder_of_an_attempt(tmp_path, name):
    with pytest.raises(LaunchError, match="cannot write a snapshot"):
        write_file(tmp_path / "study", 0, 1, name, b"x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_files_outside_the_study_are_not_read(tmp_path):
    folder, outside = tmp_path / "study", tmp_path / "secret"
    folder.mkdir()
    outside.write_text("secret")
    (folder / "link").symlink_to(outside)
    for path in (outside, folder / "link", folder / ".." / "secret", Path("secret")):
        assert read_file(folder, str(path)) is None


def test_folder_is_recognised_by_its_mark(tmp_path):
    here, like = tmp_path / "here", tmp_path / "like"
    here.mkdir()
    like.mkdir()
    mark = FolderMark(folder=here)
    assert not sees_folder(mark)
    with mark.laid():
        assert sees_folder(mark)
        assert [path.name for path in here.iterdir()] == [mark.path.name]
        assert not sees_folder(replace(mark, folder=like))
        replace(mark, folder=like, text=mark.text[:8] + "f" * 24).path.write_text("of another launch")
        assert not sees_folder(replace(mark, folder=like))
    assert list(here.iterdir()) == []
