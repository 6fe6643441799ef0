"""Where the files of a study lie is written so that it is found again when all of it has moved."""

from pathlib import Path

import pytest

from studies.ledger.files import found_file, found_folder, written_file, written_folder


@pytest.mark.parametrize(
    ("folder", "home", "written"),
    [
        ("/home/me/artefacts/sst2", "/home/me", "artefacts/sst2"),
        ("/data/sst2", "/home/me", "/data/sst2"),
        ("/home/meadow/sst2", "/home/me", "/home/meadow/sst2"),
        ("/data/sst2", None, "/data/sst2"),
    ],
)
def test_a_folder_below_the_databases_own_is_written_relative_to_it(folder, home, written):
    place = None if home is None else Path(home)
    assert written_folder(Path(folder), place) == written
    assert found_folder(written, "sst2", place) == Path(folder)


def test_a_folder_and_its_database_are_found_where_they_have_moved_to(tmp_path):
    assert found_folder("artefacts/sst2", "sst2", tmp_path) == tmp_path / "artefacts" / "sst2"


def test_a_study_without_a_launch_has_no_folder():
    assert found_folder(None, "sst2", Path("/home/me")) is None


def test_a_folder_that_was_renamed_with_its_study_is_found(tmp_path):
    (tmp_path / "new").mkdir()
    assert found_folder("old", "new", tmp_path) == tmp_path / "new"
    (tmp_path / "old").mkdir()
    assert found_folder("old", "new", tmp_path) == tmp_path / "old"


@pytest.mark.parametrize("name", ["", "a/b", "a\0b", "x" * 5_000])
def test_a_name_that_is_none_of_a_file_finds_what_is_written(tmp_path, name):
    assert found_folder("old", name, tmp_path) == tmp_path / "old"


def test_a_file_in_the_folder_is_written_relative_to_it_and_every_other_as_it_is():
    folder = Path("/home/me/sst2")
    for path, written in {
        "/home/me/sst2/trial-0/attempt-1/x": "trial-0/attempt-1/x",
        "/home/me/sst2-2/trial-0/attempt-1/x": "/home/me/sst2-2/trial-0/attempt-1/x",
    }.items():
        assert written_file(path, folder) == written
        assert found_file(written, folder) == path
    assert written_file("x", None) == found_file("x", None) == "x"
