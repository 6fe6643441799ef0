"""Studies are renamed, deleted and archived, databases backed up and merged; nobody else's files are touched."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest
from support.links import plant_links
from support.rotation import is_everything as everything
from support.rotation import seed
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from studies.confirmation.execution import confirm
from studies.confirmation.request import ConfirmationRequest
from studies.errors import InvalidRequestError, StudiesError, StudyHeldError, UnknownStudyError
from studies.launch.launch import launch
from studies.ledger.files import is_marked
from studies.ledger.ledger import Ledger
from studies.ledger.tables import METADATA
from studies.maintenance import back_up, delete_study, merge_studies, rename_study
from studies.runtime.artefacts import mark_renamed
from studies.study import Study
from studies.study_file import Specification

FACTS = ("trials", "attempts", "readings", "examples", "artefacts", "events")


def study_of(folder: Path, trials: int = 6, name: str = "trivial") -> Specification:
    return specification(folder / "artefacts", "inline", trials).model_copy(update={"name": name})


def launched(folder: Path, url: str | None = None, *, trials: int = 6, name: str = "trivial") -> str:
    """Launch a study of trivial trials; the URL of its database."""
    url = url or f"sqlite:///{folder / 'ledger.db'}"
    assert launch(study_of(folder, trials, name), storage_url=url, factory=TrivialFactory()).finished
    return url


def facts(url: str, name: str) -> dict[str, object]:
    """Return all records of a study without their keys."""
    with Ledger.open(url, read_only=True) as ledger:
        study = ledger.study(name)
        found: dict[str, list[object]] = {fact: list(getattr(ledger, fact)(study.id)) for fact in FACTS}
    return {**found, "study": replace(study, id=0, name="", parent_id=None, specification={})}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the database of a study of six trials."""
    folder = tmp_path_factory.mktemp("finished")
    launched(folder)
    return folder


@pytest.fixture
def here(finished: Path, tmp_path: Path) -> Path:
    """Copy the folder of the finished study."""
    return shutil.copytree(finished, tmp_path / "here")


@pytest.fixture
def url(here: Path) -> str:
    return f"sqlite:///{here / 'ledger.db'}"


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as ledger:
        yield ledger


def confirmed(folder: Path, url: str) -> None:
    request = ConfirmationRequest(study="trivial", top=1, seeds=2, against=("lora_qv",))
    assert confirm(request, storage_url=url, factory=TrivialFactory()).finished


def hold(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET holder = 'my-desk', held_until = '2999-01-01T00:00:00.000000+00:00'")


def test_renamed_study_is_verified_and_continued(here, url, ledger):
    before = facts(url, "trivial")
    renamed = rename_study(ledger, "trivial", "other")
    assert renamed.folder == here / "artefacts" / "other"
    assert not (here / "artefacts" / "trivial").exists()
    after = facts(url, "other")
    assert {fact: after[fact] for fact in FACTS if fact != "artefacts"} == {
        fact: before[fact] for fact in FACTS if fact != "artefacts"
    }
    launched(here, url, trials=8, name="other")
    assert Study.open("other", url).verify() == []
    launched(here, url)
    assert Study.open("trivial", url).verify() == Study.open("other", url).verify() == []


def test_a_renaming_that_stops_half_way_loses_no_file(here, url, ledger):
    study = ledger.study("trivial")
    mark_renamed(study.folder, study, "other")
    assert is_marked(study.folder, study)
    assert is_marked(study.folder, replace(study, name="other"))
    assert not is_marked(study.folder, replace(study, name="third"))
    ledger.rename(study, "other")
    assert Study.open("other", url).verify() == []
    (here / "artefacts" / "trivial").rename(here / "artefacts" / "other")
    assert Study.open("other", url).verify() == []


@pytest.mark.parametrize("name", ["", "A", "a/b", "../a", "trivial-confirm"])
def test_invalid_or_taken_name_is_refused_without_effect(here, url, ledger, name):
    confirmed(here, url)
    with pytest.raises(StudiesError, match="name"):
        rename_study(ledger, "trivial", name)
    assert Study.open("trivial", url).verify() == []


def test_delete_removes_confirmations_and_files_only(here, url, ledger):
    confirmed(here, url)
    launched(here, url, name="other")
    stranger = here / "artefacts" / "trivial" / "notes.txt"
    stranger.write_text("mine")
    kept = facts(url, "other")
    names, _ = delete_study(ledger, "trivial")
    assert [study.name for study in ledger.studies()] == ["other"]
    counts = ledger.read(
        lambda link: {
            name: link.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar_one() for name in METADATA.tables
        }
    )
    assert names == ["trivial-confirm", "trivial"]
    assert counts["trials"] == len(kept["trials"])
    assert counts["readings"] == len(kept["readings"])
    assert (counts["confirmations"], counts["events"]) == (0, len(kept["events"]))
    assert facts(url, "other") == kept
    assert Study.open("other", url).verify() == []
    assert stranger.read_text() == "mine"
    assert [path.name for path in stranger.parent.iterdir()] == ["notes.txt"]
    assert not (here / "artefacts" / "trivial-confirm").exists()


def test_a_folder_that_is_not_marked_as_the_studys_is_not_deleted(here, url, ledger):
    folder = here / "artefacts" / "trivial"
    (folder / "study.json").write_text("{}")
    delete_study(ledger, "trivial")
    assert list(folder.glob("trial-*"))


def test_foreign_folder_is_never_copied_moved_or_deleted(here, url, ledger, tmp_path):
    private = tmp_path / "trivial"
    private.mkdir()
    (private / "key").write_text("secret")
    with closing(sqlite3.connect(here / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET folder = ?", [str(private)])
    rename_study(ledger, "trivial", "other")
    with closing(sqlite3.connect(here / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET folder = ?", [str(private)])
    delete_study(ledger, "other", tmp_path / "archive")
    assert ledger.studies() == []
    assert [path.name for path in (tmp_path / "archive").rglob("*")] == ["deltaspace.db"]
    assert (private / "key").read_text() == "secret"


def test_backup_ignores_the_file_of_a_killed_one(here, url, ledger, tmp_path):
    left = tmp_path / f".copy.db.{os.getpid()}"
    left.write_text("of another container, with this process's number")
    assert len(back_up(ledger, tmp_path / "copy.db")) == 1
    assert left.exists()
    assert facts(f"sqlite:///{tmp_path / 'copy.db'}", "trivial")["trials"] == facts(url, "trivial")["trials"]


def test_a_place_without_a_name_is_refused_in_a_line(url, capsys):
    for command in (["backup", "/"], ["archive", "trivial", "/", "--yes"]):
        assert main([*command, "--storage", url]) == 2
        assert "/ is there already" in capsys.readouterr().err


def test_running_study_is_not_renamed_deleted_or_archived(here, url, ledger, tmp_path):
    before = facts(url, "trivial")
    hold(here)
    for change in (
        lambda: rename_study(ledger, "trivial", "other"),
        lambda: delete_study(ledger, "trivial"),
        lambda: delete_study(ledger, "trivial", tmp_path / "archive"),
    ):
        with pytest.raises(StudyHeldError, match="is run by my-desk"):
            change()
    assert facts(url, "trivial") == before
    assert not (tmp_path / "archive").exists()
    assert Study.open("trivial", url).verify() == []


def test_a_backup_is_one_state_of_a_database_that_is_written(tmp_path):
    url, copies = f"sqlite:///{tmp_path / 'ledger.db'}", []

    def copy(progress: object) -> None:
        file = tmp_path / f"copy-{len(copies)}.db"
        with Ledger.open(url, read_only=True) as ledger:
            back_up(ledger, file)
        copies.append(f"sqlite:///{file}")

    factory = TrivialFactory(step_seconds=0.01)
    assert launch(study_of(tmp_path, 12), storage_url=url, factory=factory, observer=copy).finished
    assert len(copies) > 1
    for one in copies:
        broken = [line for line in Study.open("trivial", one).verify() if "must exist" not in line]
        assert broken == []
    assert facts(copies[-1], "trivial") == facts(url, "trivial") | {"events": facts(copies[-1], "trivial")["events"]}


def test_backup_records_file_paths_and_never_overwrites(here, url):
    file = here.parent / "elsewhere.db"
    assert main(["backup", str(file), "--storage", url]) == 0
    assert facts(f"sqlite:///{file}", "trivial") == facts(url, "trivial")
    assert Study.open("trivial", f"sqlite:///{file}").verify() == []
    with Ledger.open(url, read_only=True) as ledger, pytest.raises(InvalidRequestError, match="is there already"):
        back_up(ledger, file)
    assert not list(here.parent.glob(".*"))


@pytest.mark.slow
def test_databases_of_both_kinds_are_merged(here, url, storage_url, tmp_path):
    confirmed(here, url)
    launched(tmp_path / "there", storage_url, name="first")
    with Ledger.open(storage_url) as ledger:
        done = merge_studies(ledger, url)
        assert [(one.name, one.is_new) for one in done] == [("trivial", True), ("trivial-confirm", True)]
        again = merge_studies(ledger, url)
        assert [(one.name, one.is_new) for one in again] == [("trivial", False), ("trivial-confirm", False)]
        assert [study.name for study in ledger.studies()] == ["first", "trivial", "trivial-confirm"]
        confirmation = ledger.study("trivial-confirm")
        assert ledger.confirmation(confirmation).study == "trivial"
    for name in ("trivial", "trivial-confirm"):
        assert facts(storage_url, name) == facts(url, name)
        assert Study.open(name, storage_url).verify() == []
    launched(tmp_path, storage_url, trials=8)
    assert Study.open("trivial", storage_url).verify() == []


def test_merged_study_with_a_taken_name_is_renamed(here, url, tmp_path, capsys):
    target = launched(tmp_path / "there", f"sqlite:///{tmp_path / 'there.db'}", trials=3)
    capsys.readouterr()
    assert main(["merge", url, "--storage", target]) == 0
    assert capsys.readouterr().err == "trivial: taken as trivial-2; another study has its name.\n"
    assert Study.open("trivial-2", target).verify() == []
    assert Study.open("trivial", url).verify() == []
    launched(here, target, trials=8, name="trivial-2")
    assert Study.open("trivial-2", target).verify() == []


def test_a_database_is_not_merged_with_itself(here, url, ledger):
    (here.parent / "link.db").symlink_to(here / "ledger.db")
    for other in (url, f"sqlite:///{here.parent / 'link.db'}"):
        with pytest.raises(InvalidRequestError, match="twice"):
            merge_studies(ledger, other)


def test_an_archive_is_whole_where_it_is_moved_to_and_can_be_taken_back(here, url, ledger, tmp_path):
    confirmed(here, url)
    launched(here, url, name="other")
    before = {name: facts(url, name)["trials"] for name in ("trivial", "trivial-confirm")}
    assert main(["archive", "trivial", str(tmp_path / "archive"), "--yes", "--storage", url]) == 0
    assert [study.name for study in ledger.studies()] == ["other"]
    assert [path.name for path in (here / "artefacts").iterdir()] == ["other"]
    moved = (tmp_path / "archive").rename(tmp_path / "moved")
    archive = f"sqlite:///{moved / 'deltaspace.db'}"
    for name, trials in before.items():
        assert Study.open(name, archive).verify() == []
        assert facts(archive, name)["trials"] == trials
    merge_studies(ledger, archive)
    assert Study.open("trivial", url).verify() == Study.open("other", url).verify() == []


def test_archive_keeps_files_behind_links_and_leaves_outside_files(here, url, tmp_path):
    folder, outside = here / "artefacts" / "trivial", tmp_path / "outside"
    outside.mkdir()
    plant_links(folder, outside)
    assert main(["archive", "trivial", str(tmp_path / "archive"), "--yes", "--storage", url]) == 0
    found = Study.open("trivial", f"sqlite:///{tmp_path / 'archive' / 'deltaspace.db'}").verify()
    assert len(found) == 1
    assert "must hold nothing but the files of its records" in found[0]
    assert not folder.exists()
    assert [path.name for path in outside.iterdir()] == ["file"]


@pytest.mark.parametrize("command", [["delete", "trivial"], ["archive", "trivial", "archive"]])
def test_irreversible_commands_need_confirmation(here, url, command, monkeypatch, capsys):
    monkeypatch.chdir(here)
    capsys.readouterr()
    assert main([*command, "--storage", url]) == 2
    assert "--yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: "n")
    assert main([*command, "--storage", url]) == 130
    assert Study.open("trivial", url).verify() == []
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: "y")
    assert main([*command, "--storage", url]) == 0
    with pytest.raises(UnknownStudyError):
        Study.open("trivial", url)


def killed(line: int, *arguments: str) -> bool:
    """End a process that runs a command at a line of its own that it comes to; False if it ended before."""
    with warnings.catch_warnings(action="ignore"):  # of threads, which the command does not need
        child = os.fork()
    if child == 0:
        lines = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal lines
            if not frame.f_code.co_filename.endswith(("studies/maintenance.py", "studies/runtime/artefacts.py")):
                return None
            lines += event == "line"
            if lines == line:
                os._exit(137)
            return trace

        sys.settrace(trace)
        main(arguments)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 137


def unfinished_files(folder: Path) -> list[str]:
    """Return the unfinished files that a command has left below a folder."""
    return [str(path) for path in folder.rglob("*.tmp*")]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["delete", "archive", "backup", "rename"])
def test_a_command_that_was_killed_at_any_line_is_finished_by_the_next(here, url, tmp_path, command):
    place = {"archive": tmp_path / "archive", "backup": tmp_path / "copy.db", "rename": "other"}.get(command)
    arguments = [command, *(["trivial"] if command != "backup" else []), *([str(place)] if place else [])]
    arguments += ["--storage", url, *(["--yes"] if command in ("delete", "archive") else [])]
    shutil.copytree(here, tmp_path / "whole")
    line, was_killed = 1, True
    while was_killed:
        was_killed = killed(line, *arguments)
        is_done = command == "backup" and place.exists()
        assert main(arguments) == 0 or is_done or studies_of(url) in ([], ["other"])
        assert unfinished_files(tmp_path) == []
        assert studies_of(url) == {"backup": ["trivial"], "rename": ["other"]}.get(command, [])
        if command in ("delete", "archive"):
            assert list((here / "artefacts").iterdir()) == []
        if command == "archive":
            assert Study.open("trivial", f"sqlite:///{place / 'deltaspace.db'}").verify() == []
        if command == "backup":
            assert Study.open("trivial", f"sqlite:///{place}").verify() == []
        if command == "rename":
            assert Study.open("other", url).verify() == []
            assert [path.name for path in (here / "artefacts").iterdir()] == ["other"]
        for gone in (here, tmp_path / "archive"):
            shutil.rmtree(gone, ignore_errors=True)
        (tmp_path / "copy.db").unlink(missing_ok=True)
        shutil.copytree(tmp_path / "whole", here)
        line += 1 if everything() else 1 + random.Random(line + seed()).randrange(9)
    assert line > 5


def studies_of(url: str) -> list[str]:
    with Ledger.open(url, read_only=True) as ledger:
        return [study.name for study in ledger.studies()]


def test_verify_names_the_files_of_a_killed_command(here, url, capsys):
    script = "from pathlib import Path; from trial_runner.files import unfinished; unfinished(Path('x.db')).touch()"
    subprocess.run([sys.executable, "-c", script], cwd=here, check=True)
    (left,) = here.glob(".x.db.*.tmp")
    capsys.readouterr()
    assert main(["verify", "trivial", "--storage", url]) == 0
    assert f"left by a command that was killed: {left}" in capsys.readouterr().err
    with Ledger.open(url, read_only=True) as ledger:
        back_up(ledger, here / "x.db")
    assert not left.exists()


def test_killed_merge_is_finished_by_the_next(here, url, tmp_path):
    target = launched(tmp_path / "there", f"sqlite:///{tmp_path / 'there.db'}", trials=3)
    with Ledger.open(target) as ledger, Ledger.open(url, read_only=True) as other:
        ledger.copy_from(other)  # and killed
        assert Study.open("trivial-2", target).verify() != []
        merge_studies(ledger, url)
    assert Study.open("trivial-2", target).verify() == []
