"""A launch that joins another works for it, and runs the study itself when the other one has ended."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from support.killed_study import Study, check_at_rest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory, TrivialRunner, nothing
from support.work_clock import STEP_SECONDS, WorkClock

from studies.errors import FencedError, LaunchError, StudiesError
from studies.fleet.backend import RunnerFactory
from studies.keeping.calls import reply_of
from studies.keeping.keeper import StudyKeeper
from studies.keeping.messages import Answer, Report
from studies.keeping.progress import Progress
from studies.launching.launch import launch
from studies.launching.running import LaunchResult
from studies.store.ledger import Ledger
from trial_runner.requests import TrialRequest

PATIENCE_SECONDS = 120


class Held:
    """Makes runners whose every step waits until something holds."""

    def __init__(self, until: Callable[[], object], after: Callable[[TrialRequest, int], None] = nothing) -> None:
        self.until, self.after = until, after

    def __call__(self, threads: int) -> TrivialRunner:
        return TrivialRunner(on_step=self._wait)

    def _wait(self, request: TrialRequest, step: int) -> None:
        wait_until(self.until)
        self.after(request, step)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Launches:
    """Launches of one study of trivial trials, each in a thread."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.study = Study(f"sqlite:///{folder / 'ledger.db'}", folder / "artefacts", "inline", trials)
        self.results: dict[str, LaunchResult | Exception] = {}
        self.seen: dict[str, Progress] = {}
        self.told: dict[str, list[str]] = {}
        self.threads: dict[str, threading.Thread] = {}

    def start(
        self,
        name: str,
        *,
        factory: RunnerFactory | None = None,
        folder: Path | None = None,
        time_budget: float | None = None,
        **wishes: bool,
    ) -> None:
        factory = factory or TrivialFactory()
        study = specification(folder or self.study.folder, "inline", self.study.trials)
        study = study.model_copy(update={"fleet": study.fleet.model_copy(update={"time_budget": time_budget})})

        def run() -> None:
            try:
                self.results[name] = launch(
                    study,
                    storage_url=self.study.url,
                    factory=factory,
                    lease_seconds=20,
                    observer=lambda progress: self.seen.update({name: progress}),
                    announce=lambda lines: self.told.update({name: list(lines)}),
                    **wishes,
                )
            except StudiesError as error:
                self.results[name] = error

        self.threads[name] = threading.Thread(target=run)
        self.threads[name].start()

    def wait(self, name: str) -> LaunchResult | Exception:
        self.threads[name].join(PATIENCE_SECONDS)
        assert not self.threads[name].is_alive(), self.workers()
        return self.results[name]

    def finished(self, name: str) -> bool:
        result = self.wait(name)
        assert isinstance(result, LaunchResult), result
        return result.finished

    def workers(self) -> dict[str, int]:
        """How many attempts every place has begun; that of the launch itself is ``inline``."""
        found: dict[str, int] = {}
        try:
            with Ledger.open(self.study.url, read_only=True) as ledger:
                for attempt in ledger.attempts(ledger.study("trivial").id):
                    place = attempt.worker.partition("/")[0]
                    found[place] = found.get(place, 0) + 1
        except StudiesError:
            pass
        return found

    def keepers(self) -> int:
        with Ledger.open(self.study.url, read_only=True) as ledger:
            return len(ledger.keepers(ledger.study("trivial").id))

    def has_ended(self, name: str) -> bool:
        return not self.threads[name].is_alive()

    def joined(self) -> list[str]:
        return [place for place in self.workers() if place != "inline"]


def test_two_launches_share_a_study_and_both_are_told_that_it_is_finished(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 12)
    launches.start("first", factory=Held(launches.joined))
    wait_until(launches.workers)
    launches.start("second", join=True)
    assert launches.finished("first")
    assert launches.finished("second")
    [joined] = launches.joined()
    assert joined.endswith(":inline")
    assert set(launches.workers()) == {"inline", joined}
    check_at_rest(launches.study)
    first, second = launches.seen["first"], launches.seen["second"]
    assert {one.number: one for one in second.just_ended} == {one.number: one for one in first.just_ended}
    assert (second.top, second.counts) == (first.top, first.counts)
    assert any("runs the study; this launch works for it." in line for line in launches.told["second"])
    assert not any("works for it" in line for line in launches.told["first"])
    with Ledger.open(launches.study.url, read_only=True) as ledger:
        study = ledger.study("trivial").id
        assert len(ledger.keepers(study)) == 1
        assert {attempt.attempt for attempt in ledger.attempts(study)} == {1}


def test_a_launch_that_joins_nobody_is_an_ordinary_launch(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 4)
    launches.start("only", join=True)
    assert launches.finished("only")
    assert list(launches.workers()) == ["inline"]
    check_at_rest(launches.study)


def test_a_launch_that_takes_over_is_answered_by_and_knows_those_that_joined(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 16)
    replaced = Held(lambda: launches.keepers() == 2)
    launches.start("first", factory=replaced)
    wait_until(launches.workers)
    launches.start("joined", factory=replaced, join=True)
    wait_until(launches.joined)
    [before] = launches.joined()
    begun = launches.workers()[before]
    more = Held(lambda: launches.workers()[before] > begun)
    launches.start("second", factory=more, take_over=True)
    assert isinstance(launches.wait("first"), FencedError)
    assert launches.finished("second")
    assert launches.finished("joined")
    assert launches.joined() == [before]
    assert launches.workers()[before] > begun
    check_at_rest(launches.study)


def test_workers_that_crash_end_the_launch_that_they_are_of_and_no_other(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 12)
    launches.start("first", factory=Held(lambda: "second" in launches.results))
    wait_until(launches.workers)
    raising = TrivialFactory(raises_at=dict.fromkeys(range(12), 1))
    launches.start("second", factory=raising, join=True)
    error = launches.wait("second")
    assert isinstance(error, LaunchError)
    assert "workers crashed 5 times in a row; the last said: MemoryError" in str(error)
    assert launches.finished("first")
    trials = launches.study.recorded()
    assert all(trial.state.is_terminal for trial in trials)
    assert len(trials) == 12


def test_a_launch_without_the_folder_of_the_study_is_refused_in_a_line(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 12)
    launches.start("first", factory=Held(lambda: "second" in launches.results))
    wait_until(launches.workers)
    own = tmp_path / "artefacts" / "trivial"
    own.rename(tmp_path / "elsewhere")  # the other machine's disk, which this one does not see
    try:
        launches.start("second", folder=tmp_path / "another", join=True)
        error = launches.wait("second")
    finally:
        (tmp_path / "elsewhere").rename(own) if not own.exists() else None
    assert isinstance(error, LaunchError)
    assert "must be one folder, on a shared disk, for all launches that work on it; it is not there" in str(error)
    assert "\n" not in str(error)
    launches.wait("first")


def test_a_call_in_other_words_is_refused_and_harms_nobody(tmp_path: Path) -> None:
    launches = Launches(tmp_path, 16)
    is_answered = threading.Event()
    launches.start("first", factory=Held(is_answered.is_set))
    wait_until(launches.workers)
    with Ledger.open(launches.study.url, create=False) as ledger:
        study = ledger.study("trivial").id
        number = ledger.ask(study, "desk", json.dumps([{"verb": "sing"}]))
        wait_until(lambda: ledger.answer(study, "desk", number))
        is_answered.set()
        said = ledger.answer(study, "desk", number)
    assert said is not None
    assert "in the words of this release" in str(reply_of(said))
    assert launches.finished("first")
    check_at_rest(launches.study)


def test_a_call_that_meets_an_error_of_nobodys_ends_its_own_launch_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = StudyKeeper.exchange

    def exchange(keeper: StudyKeeper, worker: str, reports: Sequence[Report], free_slots: int) -> Answer:
        if not worker.startswith("inline/"):
            raise RuntimeError("torn\nand more of it")
        return serve(keeper, worker, reports, free_slots)

    monkeypatch.setattr(StudyKeeper, "exchange", exchange)
    launches = Launches(tmp_path, 12)
    launches.start("first", factory=Held(lambda: {"second", "third"} <= launches.results.keys()))
    wait_until(launches.workers)
    for name in ("second", "third"):  # whoever is refused leaves somebody who answers
        launches.start(name, join=True)
        error = launches.wait(name)
        assert str(error).endswith("refuses: it could not answer, RuntimeError: torn."), error
    assert launches.finished("first")
    check_at_rest(launches.study)
    with Ledger.open(launches.study.url, read_only=True) as ledger:
        events = [event.text for event in ledger.events(ledger.study("trivial").id)]
    assert sum(text.endswith("a call could not be answered: RuntimeError: torn") for text in events) == 2


def test_a_launch_whose_other_has_ended_goes_on_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(tmp_path, 16)
    factory = Held(launches.joined, WorkClock(monkeypatch))
    launches.start("first", factory=factory, time_budget=20 * STEP_SECONDS)
    wait_until(launches.workers)
    launches.start("second", factory=Held(lambda: "first" in launches.results), join=True)
    stopped = launches.wait("first")
    assert isinstance(stopped, LaunchResult)
    assert "the time budget of 1 s is used up" in stopped.reason
    assert launches.finished("second")
    check_at_rest(launches.study)
    assert launches.keepers() == 2
