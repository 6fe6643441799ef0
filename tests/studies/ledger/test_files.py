"""Where the files of a study lie, and which paths of a ledger are a study's own."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from studies.ledger.files import (
    MARKER,
    found_file,
    found_folder,
    identity,
    is_own_file,
    path_exists,
    written_file,
    written_folder,
)
from studies.ledger.ledger import Ledger


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


def test_a_folder_that_was_renamed_with_its_study_is_found(tmp_path):
    (tmp_path / "new").mkdir()
    assert found_folder("old", "new", tmp_path) == tmp_path / "new"
    (tmp_path / "old").mkdir()
    assert found_folder("old", "new", tmp_path) == tmp_path / "old"


@pytest.mark.parametrize("name", ["", "a/b", "a\0b", "x" * 5_000])
def test_name_that_is_no_file_name_finds_the_recorded_folder(tmp_path, name):
    assert found_folder("old", name, tmp_path) == tmp_path / "old"


def test_only_files_in_the_folder_are_stored_relative():
    folder = Path("/home/me/sst2")
    for path, written in {
        "/home/me/sst2/trial-0/attempt-1/x": "trial-0/attempt-1/x",
        "/home/me/sst2-2/trial-0/attempt-1/x": "/home/me/sst2-2/trial-0/attempt-1/x",
    }.items():
        assert written_file(path, folder) == written
        assert found_file(written, folder) == path
    assert written_file("x", None) == found_file("x", None) == "x"


@pytest.fixture
def study(tmp_path, values):
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        return ledger.create_study(values.study())


@pytest.fixture
def folder(study, tmp_path):
    """Return a marked folder with one attempt."""
    folder = tmp_path / "artefacts" / study.name
    (folder / "trial-3" / "attempt-1").mkdir(parents=True)
    (folder / MARKER).write_text(json.dumps(identity(study)))
    return folder


@pytest.fixture
def outside(tmp_path):
    """Return another user's file, in folders of the same names."""
    place = tmp_path / "elsewhere" / "trial-3" / "attempt-1"
    place.mkdir(parents=True)
    (place / "x").write_text("mine")
    return place / "x"


def test_file_of_an_attempt_is_the_studys_own_even_if_missing(study, folder):
    file = folder / "trial-3" / "attempt-1" / "x"
    assert is_own_file(study, file)
    file.write_text("content")
    assert is_own_file(study, str(file))


def test_a_folder_that_is_reached_by_a_link_is_the_studys_own(study, folder, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "artefacts")
    assert is_own_file(study, tmp_path / "link" / study.name / "trial-3" / "attempt-1" / "x")


def test_the_folder_of_another_study_is_not(study, folder):
    file = folder / "trial-3" / "attempt-1" / "x"
    assert not is_own_file(replace(study, name="other"), file)
    assert not is_own_file(replace(study, created_at=study.created_at.replace(year=1999)), file)


def test_a_folder_without_a_readable_mark_is_not(study, folder, outside):
    assert not is_own_file(study, outside)
    for mark in ("", "[]", "[" * 5_000, "\udcff"):
        (folder / MARKER).write_bytes(mark.encode(errors="surrogateescape"))
        assert not is_own_file(study, folder / "trial-3" / "attempt-1" / "x")
    (folder / MARKER).unlink()
    os.mkfifo(folder / MARKER)
    assert not is_own_file(study, folder / "trial-3" / "attempt-1" / "x")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "trial-3/attempt-1/x",
        "/x",
        "\0",
        "{folder}/study.json",
        "{folder}/trial-3/x",
        "{folder}/trial-3/attempt-1/deep/x",
        "{folder}/trial-3/attempt-1/../attempt-1/x",
        "{folder}/trial-3/attempt-1/../../../../elsewhere/trial-3/attempt-1/x",
        "/" + "x" * 5_000 + "/trial-3/attempt-1/x",
    ],
)
def test_every_other_path_is_not(study, folder, path):
    assert not is_own_file(study, path.format(folder=folder))


def test_file_behind_a_link_is_not_the_studys_own(study, folder, outside):
    attempt = folder / "trial-3" / "attempt-1"
    (attempt / "x").symlink_to(outside)
    (attempt.parent / "attempt-2").symlink_to(outside.parent)
    (folder / "trial-4").symlink_to(outside.parent.parent)
    (attempt / "round").symlink_to(attempt / "round")
    for file in ("trial-3/attempt-1/x", "trial-3/attempt-2/x", "trial-4/attempt-1/x"):
        assert (folder / file).read_text() == "mine"
        assert not is_own_file(study, folder / file)
    assert not path_exists(attempt / "round")
    assert not path_exists(attempt / "a\0b")
