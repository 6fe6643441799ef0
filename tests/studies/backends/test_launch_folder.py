"""The folder of a launch: private, removed with it, and removed later if it was killed."""

import fcntl
import os
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from studies.backends.driver_process import launch_folder


@pytest.fixture(autouse=True)
def temporary_folder(monkeypatch):
    """Yield a folder with a short name as the place of temporary files."""
    with tempfile.TemporaryDirectory(prefix="f", dir="/tmp") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def test_only_its_user_can_enter_it_and_it_goes_with_the_launch(temporary_folder):
    with launch_folder() as folder:
        assert folder.parent == temporary_folder
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "r").mkdir(mode=0o777)
    assert list(temporary_folder.iterdir()) == []


@contextmanager
def locked(folder):
    """Hold a launch folder as a running launch does."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def test_folder_of_killed_launch_is_removed_and_live_one_kept(temporary_folder):
    left, lives = temporary_folder / "dslaunch-left", temporary_folder / "dslaunch-lives"
    for folder in (left, lives):
        folder.mkdir()
    with locked(lives), launch_folder():
        assert (left.exists(), lives.exists()) == (False, True)


def test_live_launch_keeps_its_folder_despite_age_cleanup(temporary_folder):
    with launch_folder() as lives:
        for file in lives.iterdir():
            file.unlink()
        os.utime(lives, (0, 0))
        with launch_folder():
            assert lives.exists()


def test_other_files_with_the_prefix_of_launches_are_ignored(temporary_folder):
    target = temporary_folder / "mine"
    target.mkdir()
    (temporary_folder / "dslaunch-link").symlink_to(target)
    os.mkfifo(temporary_folder / "dslaunch-pipe")
    (temporary_folder / "dslaunch-file").touch()
    before = set(temporary_folder.iterdir())
    with launch_folder() as folder:
        assert set(temporary_folder.iterdir()) == before | {folder}
    assert target.exists()


def test_next_launch_removes_unlocked_remains_of_ray(temporary_folder):
    left = temporary_folder / "dslaunch-left"
    (left / "session").mkdir(parents=True)
    with launch_folder():
        assert not left.exists()


def test_launches_that_start_together_leave_one_another_alone(temporary_folder):
    missing = []

    def start_again_and_again():
        for _ in range(100):
            with launch_folder() as folder:
                if not folder.exists():
                    missing.append(folder)

    threads = [threading.Thread(target=start_again_and_again) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == []
    assert list(temporary_folder.iterdir()) == []
