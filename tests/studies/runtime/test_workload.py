"""One launch runs a study at a time: a second is refused, or takes it over when it is told to."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from deltaspace.commands.main import main
from studies.errors import FencedError, StorageError, StudyHeldError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger


class Study:
    """A study of trivial trials on SQLite."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder / 'ledger.db'}"

    def launch(
        self, trials: int = 12, *, step_seconds: float = 0.0, take_over: bool = False, **given: object
    ) -> LaunchResult:
        study = specification(self.folder / "artefacts", "inline", trials)
        factory = TrivialFactory(step_seconds=step_seconds)
        return launch(study, storage_url=self.url, factory=factory, take_over=take_over, **given)

    def holder(self) -> str | None:
        with Ledger.open(self.url, read_only=True) as ledger:
            hold = ledger.holder(ledger.study("trivial").id)
        return None if hold is None else hold.holder


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)


def test_a_launch_holds_its_study_while_it_runs_and_lets_go_of_it(study):
    holders: list[str | None] = []
    assert study.launch(step_seconds=0.01, observer=lambda progress: holders.append(study.holder())).finished
    assert len(set(holders)) == 1
    assert None not in holders
    assert study.holder() is None


def test_replaced_database_is_not_opened_at_launch_end(study):
    file, other = study.folder / "ledger.db", b"somebody else's"

    def replace(progress: object) -> None:
        for one in study.folder.glob("ledger.db*"):
            one.unlink()
        file.write_bytes(other)

    with pytest.raises(StorageError, match="was replaced by another file while in use"):
        study.launch(observer=replace)
    assert [(one.name, one.read_bytes()) for one in study.folder.glob("ledger.db*")] == [("ledger.db", other)]


def test_second_launch_is_refused_without_effect(study):
    messages: list[str] = []

    def try_again(progress: object) -> None:
        if not messages:
            with pytest.raises(StudyHeldError) as refused:
                study.launch()
            messages.append(str(refused.value))

    assert study.launch(step_seconds=0.01, observer=try_again).finished
    [line] = messages
    assert line.startswith("study 'trivial' is run by process ")
    assert "\n" not in line
    with Ledger.open(study.url, read_only=True) as ledger:
        assert len(ledger.keepers(ledger.study("trivial").id)) == 1


def test_a_launch_that_takes_over_ends_the_other_which_lets_the_study_be(study):
    second: list[LaunchResult] = []
    other = threading.Thread(target=lambda: second.append(study.launch(40, take_over=True)))

    def start(progress: object) -> None:
        if other.ident is None:
            other.start()

    with pytest.raises(FencedError):
        study.launch(40, step_seconds=0.01, observer=start)
    other.join(60)
    assert second[0].finished
    assert study.holder() is None


@pytest.mark.slow
def test_failed_launch_releases_its_hold(study):
    def fail(progress: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        study.launch(step_seconds=0.01, observer=fail)
    assert study.holder() is None
    assert study.launch().finished


def test_command_on_a_running_study_exits_2_without_prompt(study, capsys, monkeypatch):
    assert study.launch().finished
    with closing(sqlite3.connect(study.folder / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET holder = 'my-desk', held_until = '2999-01-01T00:00:00.000000+00:00'")
    monkeypatch.setattr("studies.launch.launch.prepared", lambda specification: pytest.fail("nothing is prepared"))
    file = study.folder / "trivial.yaml"
    file.write_text(json.dumps(specification(study.folder / "artefacts", "inline", 40).as_json()))
    assert main(["launch", str(file), "--storage", study.url]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    refused = "deltaspace: study 'trivial' is run by my-desk"
    assert printed.err.splitlines()[-1].startswith(refused)


@pytest.mark.parametrize(("answer", "wanted"), [("end", True), ("leave", False)])
def test_takeover_is_confirmed_on_a_terminal(study, monkeypatch, answer, wanted):
    from deltaspace.commands import options

    assert study.launch().finished
    prompts: list[str] = []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.prompt", lambda text, **_: answer if prompts.append(text) is None else "")
    assert not options.takes_over("trivial", study.url, given=False)
    assert not prompts
    with closing(sqlite3.connect(study.folder / "ledger.db")) as link, link:
        link.execute("UPDATE studies SET holder = 'my-desk', held_until = '2999-01-01T00:00:00.000000+00:00'")
    assert options.takes_over("trivial", study.url, given=False) is wanted
    assert prompts == ["'trivial' is run by my-desk. End that launch and go on here, or leave it alone?"]
    assert options.takes_over("trivial", study.url, given=True)
    assert not options.takes_over("another", study.url, given=False)
    assert len(prompts) == 1
