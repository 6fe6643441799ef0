"""Files that cannot be deleted: said, left, and no error."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ordinary_user import as_ordinary_user

from studies.errors import LaunchError
from studies.runtime.artefacts import attempt_folder, delete_files, describe_file, is_whole, make_attempt_folder


@pytest.fixture
def files() -> Iterator[list[Path]]:
    """Three files of an attempt, in a folder with execute permission for all users."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = attempt_folder(Path(name), 0, 1)
        folder.mkdir(parents=True)
        paths = [folder / f"step-{step}.json" for step in (4, 8, 12)]
        for path in paths:
            path.write_text("content")
        yield paths


def test_files_are_deleted_with_the_folders_they_leave_empty(files):
    assert delete_files([*files, files[0].with_name("gone.json")]) == {}
    assert not files[0].parent.parent.exists()


def test_folder_at_a_files_path_is_named_and_others_deleted(files):
    files[1].unlink()
    files[1].mkdir()
    assert list(delete_files(files)) == [files[1]]
    assert [path.exists() for path in files] == [False, True, False]


def test_files_in_read_only_folder_are_deleted_later(files):
    files[0].parent.chmod(0o555)
    with as_ordinary_user():
        refused = delete_files(files)
    assert refused == dict.fromkeys(files, "Permission denied")
    files[0].parent.chmod(0o755)
    assert delete_files(files) == {}
    assert not files[0].exists()


@pytest.mark.parametrize("planted", [os.mkfifo, os.mkdir])
def test_non_file_at_a_snapshots_path_is_not_waited_for(files, planted):
    snapshot = describe_file(files[0], trial=0, kind="snapshot", step=4)
    assert is_whole(snapshot)
    files[0].unlink()
    planted(files[0])
    assert not is_whole(snapshot)


@pytest.mark.parametrize("planted", ["trial-3", "trial-3/attempt-1"])
def test_attempt_folder_behind_a_link_is_refused(tmp_path, planted):
    study, other_folder = tmp_path / "study", tmp_path / "elsewhere"
    other_folder.mkdir()
    link = study / planted
    link.parent.mkdir(parents=True)
    link.symlink_to(other_folder)
    with pytest.raises(LaunchError, match=r"must be a folder; a link leads to .*elsewhere"):
        make_attempt_folder(study, 3, 1)
    assert make_attempt_folder(study, 4, 1).is_dir()


def test_a_study_may_lie_behind_a_link_of_its_owner(tmp_path):
    (tmp_path / "large_disk").mkdir()
    (tmp_path / "study").symlink_to(tmp_path / "large_disk")
    assert make_attempt_folder(tmp_path / "study", 0, 1).resolve() == tmp_path / "large_disk" / "trial-0" / "attempt-1"
