"""A study and its database are moved together, or apart, and go on."""

import shutil
from pathlib import Path

import pytest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.study import Study


def go_on(folder: Path, trials: int, storage: str | None = None) -> Study:
    """Launch the study of a folder up to so many trials."""
    url = storage or f"sqlite:///{folder / 'ledger.db'}"
    study = specification(folder / "artefacts", "inline", trials, rule="none")
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    return Study.open("trivial", url)


def files(study: Study) -> set[Path]:
    """Return the files that the ledger names, all of which must exist."""
    with Ledger.open(study.storage, read_only=True) as ledger:
        found = {Path(one.path) for one in ledger.artefacts(ledger.study(study.name).id)}
    assert all(file.is_file() for file in found)
    return found


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Return a folder with a database and a study of six trials."""
    (tmp_path / "here").mkdir()
    files(go_on(tmp_path / "here", 6))
    return tmp_path / "here"


def test_a_folder_that_was_moved_is_shown_verified_and_continued(here, capsys):
    there = here.rename(here.with_name("there"))
    url = f"sqlite:///{there / 'ledger.db'}"
    study = Study.open("trivial", url)
    assert all(file.is_relative_to(there) for file in files(study))
    for command in ("show", "verify"):
        assert main([command, "trivial", "--storage", url]) == 0
    assert "nothing is broken" in capsys.readouterr().err
    before = len(files(study))
    again = go_on(there, 8)
    assert again.verify() == []
    assert len(files(again)) > before
    assert not here.exists()


def test_launch_from_another_folder_continues_in_the_studys_folder(here, tmp_path):
    study = specification(tmp_path / "elsewhere", "inline", 8, rule="none")
    url = f"sqlite:///{here / 'ledger.db'}"
    assert launch(study, storage_url=url, factory=TrivialFactory()).finished
    assert not (tmp_path / "elsewhere").exists()
    assert all(file.is_relative_to(here) for file in files(Study.open("trivial", url)))


def test_next_launch_finds_moved_files(here, tmp_path):
    shutil.move(here / "artefacts", tmp_path / "large" / "artefacts")
    url = f"sqlite:///{here / 'ledger.db'}"
    assert Study.open("trivial", url).verify() != []
    study = go_on(tmp_path / "large", 8, url)
    assert study.verify() == []
    assert all(file.is_relative_to(tmp_path / "large") for file in files(study))


def test_the_database_holds_no_path_of_where_it_was(here):
    with Ledger.open(f"sqlite:///{here / 'ledger.db'}", read_only=True) as ledger:
        written = ledger.read(lambda link: link.exec_driver_sql("SELECT path FROM artefacts").scalars().all())
        [folder] = ledger.read(lambda link: link.exec_driver_sql("SELECT folder FROM studies").scalars().all())
    assert folder == "artefacts/trivial"
    assert all(path.startswith("trial-") for path in written)
