"""A study of trivial trials that is launched in processes of its own, which are killed; and whether it is whole."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from support.trivial_runner import score_at
from support.violations import violations

from studies.errors import StudiesError
from studies.launch.preparation import plan_of
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, TrialRecord, TrialState
from studies.runtime.artefacts import study_folder
from studies.study_file.recorded_specification import recorded_space, recorded_specification

TESTS = Path(__file__).parents[1]

PATIENCE_SECONDS = 240
_LOOK_SECONDS = 0.05


class Launch(Protocol):
    """A launch in a process of its own."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


def start(arguments: Sequence[str], log: Path) -> Launch:
    """Start ``support.trivial_launch`` with some arguments, in a process group of its own."""
    paths = [str(TESTS.parent), str(TESTS)]
    with log.open("w") as file:
        return subprocess.Popen(
            [sys.executable, str(TESTS / "support" / "trivial_launch.py"), *arguments],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )


@dataclass
class LaunchedStudy:
    """A study of trivial trials that is launched again and again.

    Attributes:
        options: Options of `support.trivial_launch` other than the defaults.
        name: Name of the study, or of its confirmation.
        start: Function that starts a launch.
        in_training: Number of counted faults at which a trial trained.
    """

    url: str
    folder: Path
    backend: str
    trials: int
    step_seconds: float = 0.01
    options: Mapping[str, str] = field(default_factory=dict)
    name: str = "trivial"
    start: Callable[[Sequence[str], Path], Launch] = start
    launches: list[Launch] = field(default_factory=list)
    in_training: int = 0

    def launch(self, **options: str) -> Launch:
        """Start a launch; ``options`` are its own."""
        arguments = [self.url, str(self.folder), self.backend, str(self.trials), str(self.step_seconds)]
        arguments += [f"{key}={value}" for key, value in {**self.options, **options}.items()]
        self.launches.append(self.start(arguments, self.folder.parent / f"launch-{len(self.launches)}.log"))
        return self.launches[-1]

    def log(self, launch: int = -1) -> str:
        """Return the output of a launch."""
        number = launch % len(self.launches)
        return (self.folder.parent / f"launch-{number}.log").read_text()

    def ended(self) -> int:
        """Return the number of trials that have ended."""
        return sum(trial.state.is_terminal for trial in self.recorded())

    def recorded(self) -> list[TrialRecord]:
        """Return the trials of the ledger, none before the study exists."""
        try:
            with Ledger.open(self.url, read_only=True) as ledger:
                return ledger.trials(ledger.study(self.name).id)
        except StudiesError:  # the database is only being made
            return []

    def is_training(self) -> bool:
        """Return whether a trial has begun and has not ended."""
        return any(trial.state is TrialState.RUNNING for trial in self.recorded())

    def count_fault(self) -> None:
        """Count a fault that comes now, if a trial trains."""
        self.in_training += self.is_training()

    def broken(self) -> list[str]:
        """Return every broken invariant, those of a study at rest included."""
        with Ledger.open(self.url, read_only=True) as ledger:
            record = ledger.study(self.name)
            if record.kind is StudyKind.CONFIRMATION:
                found = violations(ledger, record.id, rung_steps=())
            else:
                found = self._broken_search(ledger)
            named = {artefact.path for artefact in ledger.artefacts(record.id)}
        trials = self.recorded()
        scores = [(trial.number, trial.score) for trial in trials if trial.score is not None]
        found += [f"trial {n}: {score}" for n, score in scores if score != score_at(trials[n].seed, 16)]
        files = study_folder(self.folder, record).glob("trial-*/attempt-*/*")
        return found + [f"nobody's file {path}" for path in files if str(path) not in named]

    def _broken_search(self, ledger: Ledger) -> list[str]:
        record = ledger.study(self.name)
        begun, space = recorded_specification(record), recorded_space(record)
        plan = plan_of(begun, record, space, storage_url=self.url)
        found = violations(ledger, record.id, rung_steps=plan.rungs.steps)
        return found

    def release(self) -> None:
        """Let it come to its end as fast as it can."""
        if "brake" in self.options:
            Path(self.options["brake"]).unlink(missing_ok=True)

    def stop(self) -> None:
        """Leave no process behind."""
        for process in self.launches:
            if process.poll() is None:
                with suppress(ProcessLookupError):  # it has not even begun a group
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
                process.wait()


ACTORS = {"worker": "Trainable", "keeper": "KeeperActor"}
CLUSTER: list[int] = []
"""Processes of a cluster that was there before any launch: whatever of a study they run belongs to its launch."""


def children(pid: int) -> list[tuple[int, str]]:
    """Return all descendants of a process with their command lines."""
    found = _descendants(pid)
    there = [one for node in CLUSTER for one in _descendants(node)]
    return found + [one for one in there if one[1].startswith("ray::") and any(n in one[1] for n in ACTORS.values())]


def _descendants(pid: int) -> list[tuple[int, str]]:
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


def wait_for(condition: Callable[[], object], process: Launch, study: LaunchedStudy) -> None:
    """Wait until something holds or the launch has ended."""
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition() and process.poll() is None:
        assert time.monotonic() < until, study.log()
        time.sleep(_LOOK_SECONDS)


def wait_for_ends(study: LaunchedStudy, process: Launch, more: int = 1) -> None:
    """Wait until so many more trials have ended."""
    before = study.ended()
    wait_for(lambda: study.ended() >= before + more, process, study)


def finish(study: LaunchedStudy, process: Launch | None = None) -> None:
    """Let the study come to its end."""
    process = process or study.launch()
    assert process.wait(PATIENCE_SECONDS) == 0, study.log()
    assert "True: " in study.log()


def actors(process: Launch, kind: str, study: LaunchedStudy) -> list[int]:
    """Process ids of the workers or of the keeper; waits until there are some."""
    found: list[int] = []

    def find() -> list[int]:
        there = children(process.pid)
        found[:] = [pid for pid, command in there if command.startswith("ray::") and ACTORS[kind] in command]
        return found

    wait_for(find, process, study)
    return found


def kill_everyone(
    study: LaunchedStudy, victims: Sequence[str], seed: int, gap: int = 1, when: Callable[[], object] | None = None
) -> list[float]:
    """Kill the launching process, a worker or the keeper in turn, each time some trials later, then let it finish.

    Args:
        apart: Trials that end between two kills, about.
        when: What holds at each kill; None for any moment.

    Returns:
        Seconds from each kill to the next end of a trial; fewer than victims where the study came to its end before.
    """
    moments = random.Random(seed)
    process = study.launch()
    seconds: list[float] = []
    for victim in victims:
        wait_for_ends(study, process, moments.randint((gap + 1) // 2, gap + gap // 2))
        if when is None:
            time.sleep(moments.uniform(0, 0.4))
        else:
            wait_for(when, process, study)
        if process.poll() is not None:
            break
        study.count_fault()
        if victim == "launch":
            process.kill()
            process.wait()
        else:
            _kill(moments.choice(actors(process, victim, study)))
        killed_at = time.monotonic()
        if victim == "launch":
            process = study.launch()
            wait_for(study.log, process, study)  # until it has taken the study over, an actor may still end a trial
        wait_for_ends(study, process)
        seconds.append(time.monotonic() - killed_at)
    study.release()
    finish(study, process)
    return seconds


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has just been replaced
        os.kill(pid, signal.SIGKILL)


def check_log_lines(study: LaunchedStudy) -> None:
    """Check that the log has only the launch's own lines, none of Ray, Tune or Optuna."""
    for launch in range(len(study.launches)):
        lines = study.log(launch).splitlines()
        assert [line for line in lines if " ended, " not in line and not line.startswith(("True: ", "False: "))] == []


def check_at_rest(study: LaunchedStudy) -> None:
    trials = study.recorded()
    assert [trial.number for trial in trials] == list(range(study.trials))
    assert all(trial.state.is_terminal for trial in trials)
    assert not any(trial.reason is not None and "lost" in trial.reason for trial in trials)
    assert study.broken() == []
