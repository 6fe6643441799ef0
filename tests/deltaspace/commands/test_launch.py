"""``deltaspace launch``: overrides, exit codes, and what goes to stdout and stderr. Nothing is trained here."""

import json
import sys
from collections.abc import Callable

import pytest

import studies.launch.launch
from deltaspace.commands.main import main
from search_space.errors import BudgetError
from studies.errors import LaunchError, StudyChangedError
from studies.launch.execution import LaunchResult
from studies.launch.launch import Announce
from studies.ledger.ledger import Ledger
from studies.records import TrialState
from studies.runtime.progress import Progress
from studies.study_file import Specification
from studies.trackers import PACKAGES, TRACKERS
from trial_runner.errors import TaskError

Observer = Callable[[Progress], None]

PROGRESS = Progress(
    study="sample",
    counts=dict.fromkeys(TrialState, 0),
    metric="accuracy",
    target_trials=6,
    steps=200,
    budget_parameters=600_000,
    seconds_elapsed=1,
    left=None,
    running=(),
)


class FakeLaunch:
    """Stands where `studies.launch.launch.launch` does: keeps what it is given and ends as it is told."""

    def __init__(self, storage: str) -> None:
        self.reason = "finished: all 6 trials have ended"
        self.is_interrupted = False
        self.worth_knowing: list[str] = []
        self.before: Exception | None = None
        self.after: Exception | None = None
        self.given: Specification | None = None
        self._storage = storage

    def __call__(
        self, specification: Specification, *, observer: Observer, announce: Announce | None, **given: object
    ) -> LaunchResult:
        assert given == {"storage_url": self._storage, "take_over": False, "observers": []}
        if announce is not None:
            announce(self.worth_knowing)
        self.given = specification
        if self.before is not None:
            raise self.before
        observer(PROGRESS)
        if self.after is not None:
            raise self.after
        with Ledger.open(self._storage) as ledger:
            study = ledger.study("sample")
        return LaunchResult(
            study=study,
            finished="finished" in self.reason,
            reason=self.reason,
            is_interrupted=self.is_interrupted,
        )


@pytest.fixture
def launched(sample_storage: str, monkeypatch: pytest.MonkeyPatch) -> FakeLaunch:
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    fake = FakeLaunch(sample_storage)
    monkeypatch.setattr(studies.launch.launch, "launch", fake)
    return fake


def test_progress_goes_to_stderr_and_the_leaderboard_to_stdout(launched, capsys):
    launched.worth_knowing = ["learned from \x1b[31mred"]
    assert main(["launch", "docstrings"]) == 0
    printed = capsys.readouterr()
    assert "learned from " in printed.err
    assert "\x1b" not in printed.err
    assert "sample: 0/6 trials" in printed.err
    assert "finished: all 6 trials have ended. For more: deltaspace launch sample --trials N." in printed.err
    assert "discovered" in printed.out
    assert "mam_adapter" in printed.out


def test_json_is_all_that_is_on_stdout(launched, capsys):
    assert main(["launch", "docstrings", "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert (result["study"], result["finished"]) == ("sample", True)
    assert result["leaderboard"]["rows"][0]["number"] == 3
    assert "0/6 trials" not in printed.err


def test_options_override_the_study_file(launched):
    options = "--trials 7 --budget 1% --seed 5 --workers 3 --pack 2 --backend inline --time-budget 1h30m"
    assert main(["launch", "docstrings", *options.split(), "--set", "training.steps=50"]) == 0
    study = launched.given
    assert study is not None
    assert (study.trials, study.budget, study.seed, study.training.steps) == (7, "1%", 5, 50)
    assert (study.fleet.workers, study.fleet.pack, study.fleet.backend) == (3, 2, "inline")
    assert study.fleet.time_budget == 5400


def test_an_option_out_of_range_is_refused_before_any_work(launched, capsys):
    assert main(["launch", "docstrings", "--workers", "0", "--backend", "spark"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[1:]] == ["fleet.backend", "fleet.workers"]
    assert launched.given is None


def test_missing_tracker_is_refused_before_any_work(launched, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGES["wandb"], None)
    assert main(["launch", "docstrings", "--observe", "wandb"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(
        "deltaspace: cannot report to wandb: the package wandb is not installed (installed trackers: "
    )
    assert error.endswith("). Run: pip install 'deltaspace[wandb]'")
    assert launched.given is None


def test_help_of_observe_names_every_tracker(capsys):
    assert main(["launch", "--help"]) == 0
    printed = capsys.readouterr().out
    listed = " ".join(printed[printed.index("--observe") :].split("--storage")[0].split())
    assert all(name in listed for name in TRACKERS)


EARLY = (BudgetError("too small."), TaskError("no column."), LaunchError("no."), StudyChangedError("a: 1 -> 2"))


@pytest.mark.parametrize(
    ("when", "error", "code"),
    [*(("before", error, 2) for error in EARLY), ("after", LaunchError("the workers cannot be started."), 1)],
)
def test_error_before_the_study_begins_is_misuse_and_a_later_one_a_failure(launched, capsys, when, error, code):
    setattr(launched, when, error)
    assert main(["launch", "docstrings"]) == code
    assert capsys.readouterr().err.splitlines()[-1] == f"deltaspace: {error}"


@pytest.mark.parametrize(("is_interrupted", "code"), [(True, 130), (False, 0)], ids=["by Ctrl-C", "time is used up"])
def test_stopped_launch_explains_how_to_continue(launched, capsys, is_interrupted, code):
    launched.is_interrupted = is_interrupted
    launched.reason = "stopped after 3 of 6 trials: whatever the words, Ctrl-C among them"
    assert main(["launch", "docstrings"]) == code
    assert "To continue: deltaspace launch sample." in capsys.readouterr().err


def test_log_appends_events_as_json_lines(launched, tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    assert main(["launch", "docstrings", "--quiet", "--log", str(log)]) == 0
    launched.after = LaunchError("the workers cannot be started.")
    assert main(["launch", "docstrings", "--log", str(log)]) == 1
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["event"] for one in events] == ["launch", "end", "launch", "end"]
    assert [one["reason"] for one in events[1::2]] == [launched.reason, "the workers cannot be started."]
    assert [one["finished"] for one in events[1::2]] == [True, False]
