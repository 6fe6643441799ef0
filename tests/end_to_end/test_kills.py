"""``kill -9`` at random moments: no trial is lost, none is recorded twice, and every invariant holds.

The random moments are drawn from a fixed seed; what happens at them is up to the machine.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.trivial_launch import specification
from support.trivial_runner import score_at

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.errors import StudiesError
from studies.keeping.artefacts import study_folder
from studies.launching import plan_of
from studies.queries.ranking import ranking_of
from studies.store.invariants import violations
from studies.store.ledger import Ledger
from studies.store.records import TrialRecord, TrialState
from studies.verifying import replay_violations, replayed
from trial_runner.backbones import config_of

TESTS = Path(__file__).parents[1]


PATIENCE_SECONDS = 240


@dataclass
class Study:
    """A study of trivial trials that is launched again and again."""

    url: str
    folder: Path
    backend: str
    trials: int
    step_seconds: float
    replicates: int = 0
    launches: list[subprocess.Popen[str]] = field(default_factory=list)

    def launch(self) -> subprocess.Popen[str]:
        """Start a launch in a process group of its own."""
        script = [sys.executable, str(TESTS / "support" / "trivial_launch.py")]
        arguments = [self.url, str(self.folder), self.backend, str(self.trials), str(self.step_seconds)]
        arguments += ["tpe", str(self.replicates)]
        paths = [str(TESTS.parent), str(TESTS)]
        log = (self.folder.parent / f"launch-{len(self.launches)}.log").open("w")
        process = subprocess.Popen(
            [*script, *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )
        log.close()
        self.launches.append(process)
        return process

    def said(self, launch: int = -1) -> str:
        """All that a launch has written."""
        number = launch % len(self.launches)
        return (self.folder.parent / f"launch-{number}.log").read_text()

    def ended(self) -> int:
        """How many trials have ended."""
        return sum(trial.state.is_terminal for trial in self.recorded())

    def recorded(self) -> list[TrialRecord]:
        """What the ledger holds; nothing before the study is there."""
        try:
            with Ledger.open(self.url, read_only=True) as ledger:
                return ledger.trials(ledger.study("trivial").id)
        except StudiesError:  # the database is only being made
            return []

    def broken(self) -> list[str]:
        """Every broken invariant, those that hold only once the study is at rest included."""
        study = specification(self.folder, self.backend, self.trials, replicates=str(self.replicates))
        with Ledger.open(self.url, read_only=True) as ledger:
            record = ledger.study("trivial")
            shape = shape_of(config_of(study.backbone))
            space = SearchSpace(shape=shape, budget=record.budget_parameters, options=study.search)
            plan = plan_of(study, record, space, storage_url=self.url, labels=0)
            found = violations(ledger, record.id, rung_steps=plan.rungs.steps)
            found += replay_violations(ledger, record.id, replayed(ledger, record, space, study.search))
            named = {artefact.path for artefact in ledger.artefacts(record.id)}
        trials = self.recorded()
        scores = [(trial.number, trial.score) for trial in trials if trial.score is not None]
        found += [f"trial {n}: {score}" for n, score in scores if score != score_at(trials[n].seed, 16)]
        files = study_folder(self.folder, record).glob("trial-*/attempt-*/*")
        return found + [f"nobody's file {path}" for path in files if str(path) not in named]

    def stop(self) -> None:
        """Leave no process behind."""
        for process in self.launches:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture
def new_study(tmp_path: Path) -> Iterator[Callable[..., Study]]:
    studies: list[Study] = []

    def make(url: str, backend: str, trials: int, step_seconds: float = 0.01, replicates: int = 0) -> Study:
        studies.append(Study(url, tmp_path / "artefacts", backend, trials, step_seconds, replicates))
        return studies[-1]

    yield make
    for study in studies:
        study.stop()


def children(pid: int) -> list[tuple[int, str]]:
    """All descendants of a process with their command lines."""
    parents: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(folder.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, IndexError):
            continue
        parents.setdefault(parent, []).append((int(folder.name), command))
    found: list[tuple[int, str]] = []
    waiting = [pid]
    while waiting:
        here = parents.get(waiting.pop(), [])
        found += here
        waiting += [child for child, _ in here]
    return found


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str], study: Study) -> None:
    """Wait until something holds or the launch has ended."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition() and process.poll() is None:
        assert time.monotonic() < until, study.said()
        time.sleep(0.05)


def finish(study: Study, process: subprocess.Popen[str] | None = None) -> None:
    """Let the study come to its end."""
    process = process or study.launch()
    assert process.wait(PATIENCE_SECONDS) == 0, study.said()
    assert "True: " in study.said()


def kill_launches(study: Study, kills: int, seed: int) -> None:
    """Kill the launching process again and again, each time some trials later."""
    moments = random.Random(seed)
    for _ in range(kills):
        process = study.launch()
        before = study.ended()
        wait_for(lambda before=before: study.ended() > before, process, study)  # type: ignore[misc]
        time.sleep(moments.uniform(0, 0.4))
        assert process.poll() is None, study.said()
        process.kill()
        process.wait()


def said_nothing_unasked(study: Study) -> None:
    """Only the launch's own lines: neither Ray nor Tune nor Optuna has a say in them."""
    for launch in range(len(study.launches)):
        lines = study.said(launch).splitlines()
        assert [line for line in lines if " ended, " not in line and not line.startswith(("True: ", "False: "))] == []


def check_at_rest(study: Study) -> None:
    trials = study.recorded()
    assert [trial.number for trial in trials] == list(range(study.trials))
    assert all(trial.state.is_terminal for trial in trials)
    assert not any(trial.reason is not None and "lost" in trial.reason for trial in trials)
    assert study.broken() == []


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_inline_study_loses_and_repeats_nothing(new_study, storage_url, kills):
    study = new_study(storage_url, "inline", 12 * kills)
    kill_launches(study, kills, seed=kills)
    finish(study)
    check_at_rest(study)


def test_a_study_that_is_killed_among_its_replicates_repeats_what_it_would_have(new_study, tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    study = new_study(url, "inline", 32, replicates=12)
    wait = study.launch()
    wait_for(lambda: study.ended() >= 20, wait, study)
    for _ in range(3):
        wait.kill()
        wait.wait()
        before = study.ended()
        wait = study.launch()
        wait_for(lambda before=before: study.ended() > before, wait, study)  # type: ignore[misc]
    finish(study, wait)
    check_at_rest(study)
    trials = study.recorded()
    assert [trial.origin == "replicate" for trial in trials] == [number >= 20 for number in range(32)]
    rounds = [[trial.replicate_of for trial in trials[begin:end]] for begin, end in ((20, 24), (24, 32))]
    assert [len(set(one)) for one in rounds] == [4, 2]
    assert [Counter(one).most_common(1)[0][1] for one in rounds] == [1, 4]
    assert all(trial.state is TrialState.COMPLETE for trial in trials[20:])
    # who was trained again follows from what came before, in any process
    with Ledger.open(url, read_only=True) as ledger:
        record = ledger.study("trivial")
        for begin, of in ((20, rounds[0]), (24, rounds[1])):
            before = ranking_of(ledger, record, trials[:begin]).trials
            assert of == [before[place % len(set(of))].number for place in range(len(of))]


ACTORS = {"worker": "Trainable", "keeper": "KeeperActor"}


def actors(process: subprocess.Popen[str], kind: str, study: Study) -> list[int]:
    """Process ids of the workers or of the keeper; waits until there are some."""

    def find() -> list[int]:
        found = children(process.pid)
        return [pid for pid, command in found if command.startswith("ray::") and ACTORS[kind] in command]

    wait_for(find, process, study)
    return find()


def kill_everyone(study: Study, victims: list[str], seed: int) -> None:
    """Kill the launching process, a worker or the keeper in turn, each time some trials later."""
    moments = random.Random(seed)
    process = study.launch()
    for victim in victims:
        before = study.ended()
        wait_for(lambda before=before: study.ended() > before, process, study)  # type: ignore[misc]
        time.sleep(moments.uniform(0, 0.4))
        assert process.poll() is None, study.said()
        if victim == "launch":
            process.kill()
            process.wait()
            process = study.launch()
            continue
        os.kill(moments.choice(actors(process, victim, study)), signal.SIGKILL)
    finish(study, process)


SHORT = ["worker", "keeper", "launch"]
LONG = ["worker", "keeper", "worker", "launch", "keeper"] * 4


def test_a_ray_study_survives_the_death_of_a_worker_the_keeper_and_the_launch(new_study, tmp_path):
    study = new_study(f"sqlite:///{tmp_path / 'ledger.db'}", "ray", 14 * len(SHORT), step_seconds=0.03)
    kill_everyone(study, SHORT, seed=len(SHORT))
    check_at_rest(study)
    said_nothing_unasked(study)


@pytest.mark.slow
def test_a_ray_study_survives_twenty_deaths(new_study, storage_url):
    study = new_study(storage_url, "ray", 14 * len(LONG), step_seconds=0.03)
    kill_everyone(study, LONG, seed=len(LONG))
    check_at_rest(study)
    said_nothing_unasked(study)


def test_a_launch_that_was_fenced_stops_and_the_other_goes_on(new_study, tmp_path):
    study = new_study(f"sqlite:///{tmp_path / 'ledger.db'}", "inline", 60)
    first = study.launch()
    wait_for(lambda: study.ended() > 2, first, study)
    second = study.launch()
    assert first.wait(PATIENCE_SECONDS) == 1
    assert "FencedError: study 'trivial' was taken over by keeper 2" in study.said(0)
    finish(study, second)
    check_at_rest(study)


@pytest.mark.parametrize("backend", ["inline", pytest.param("ray", marks=pytest.mark.slow)])
def test_ctrl_c_in_the_terminal_stops_cleanly_and_the_next_launch_goes_on(new_study, tmp_path, backend):
    study = new_study(f"sqlite:///{tmp_path / 'ledger.db'}", backend, 60, step_seconds=0.02)
    process = study.launch()
    wait_for(lambda: study.ended() > 2, process, study)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    assert process.wait(60) == 0, study.said()
    assert "False: stopped after" in study.said()
    assert "interrupted by Ctrl-C" in study.said()
    assert "Traceback" not in study.said()
    states = {trial.state.value for trial in study.recorded()}
    assert "queued" in states
    assert "running" not in states
    assert study.broken() == []
    finish(study)
    check_at_rest(study)
