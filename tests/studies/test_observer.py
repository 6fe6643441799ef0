"""Observers of a launch: they receive every trial and reading once and in order, and cannot end it."""

from pathlib import Path

import pytest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from studies import observer
from studies.errors import InvalidRequestError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.observer import Observer, named_observer
from studies.records import Reading, StudyRecord, TrialRecord


class Noting:
    """Observer that records all calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        self.calls.append(("began", trial.number))

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        self.calls.append(("reading", trial.number, reading.step, reading.score))

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        self.calls.append(("ended", trial.number, trial.state.value))

    def launch_ended(self, study: StudyRecord) -> None:
        self.calls.append(("over", study.name))

    def of(self, number: int) -> list[tuple[object, ...]]:
        return [one for one in self.calls if one[1] == number]


class Raising(Noting):
    """Observer that raises at a reading."""

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        super().reading(study, trial, reading)
        raise ZeroDivisionError("no tracker\nthere")


class Study:
    """A study of trivial trials on SQLite."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder / 'ledger.db'}"

    def launch(self, *observers: Observer, trials: int = 8) -> LaunchResult:
        study = specification(self.folder / "artefacts", "inline", trials)
        factory = TrivialFactory(step_seconds=0.01, fails_at={5: 3})
        return launch(study, storage_url=self.url, factory=factory, observers=observers)

    def expected(self, number: int) -> list[tuple[object, ...]]:
        with Ledger.open(self.url, read_only=True) as ledger:
            study = ledger.study("trivial")
            trial, readings = ledger.trial(study.id, number), ledger.readings(study.id, number)
        measured = [("reading", number, reading.step, reading.score) for reading in readings]
        return [("began", number), *measured, ("ended", number, trial.state.value)]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setattr(observer, "READ_INTERVAL_SECONDS", 0.0)
    return Study(tmp_path)


def test_observer_receives_every_trial_in_order_then_the_end(study):
    noting = Noting()
    result = study.launch(noting)
    assert result.finished
    assert result.observer_errors == ()
    for number in range(8):
        assert noting.of(number) == study.expected(number)
    assert noting.calls[-1] == ("over", "trivial")
    assert len(noting.calls) == 1 + sum(len(study.expected(number)) for number in range(8))


@pytest.mark.slow
def test_observer_of_a_later_launch_receives_only_new_trials(study):
    study.launch(Noting())
    noting = Noting()
    study.launch(noting, trials=10)
    assert {one[1] for one in noting.calls} == {8, 9, "trivial"}


def test_raising_observer_is_dropped_without_ending_the_launch(study):
    raising, noting = Raising(), Noting()
    result = study.launch(raising, noting)
    assert result.finished
    assert [one[0] for one in raising.calls if one[0] != "began"] == ["reading"]
    assert noting.calls[-1] == ("over", "trivial")
    assert result.observer_errors == (
        "observer Raising is not called again; it raised ZeroDivisionError: no tracker. The launch goes on.",
    )
    with Ledger.open(study.url, read_only=True) as ledger:
        assert "observers" not in str(ledger.study("trivial").specification)


def test_an_observer_is_named_by_its_module_or_its_word(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    assert type(named_observer("test_observer:Noting", {})).__name__ == "Noting"
    assert type(named_observer("mine", {"mine": "test_observer:Noting"})).__name__ == "Noting"


@pytest.mark.parametrize("text", ["", "tensorbord", "nowhere:x", "json:nothing", ":x", "json:"])
def test_missing_observer_is_refused(text):
    with pytest.raises(InvalidRequestError, match="observer"):
        named_observer(text, {"tensorboard": "x:y"})
