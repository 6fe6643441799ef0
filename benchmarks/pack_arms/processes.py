"""Processes of the arms, which work in turns."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import IO, Any

from pack_arms.setting import Job, Setting
from pack_arms.wire import MARK


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """Messages of a process.

    Attributes:
        wall_seconds: Wall time of the whole process.
        ready: Message after loading; empty for arm (a).
        answer: Last message.
    """

    wall_seconds: float
    ready: dict[str, Any]
    answer: dict[str, Any]


class Process:
    """Process of an arm."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start Python with a command."""
        self._began_at = time.perf_counter()
        self._errors: IO[str] = tempfile.TemporaryFile("w+", prefix="packs-")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def receive(self, word: str) -> dict[str, Any]:
        """Wait for a message and return it.

        Raises:
            RuntimeError: If the process ends without it; the text has the last lines of its errors.
        """
        for line in self._process.stdout or ():
            if line.startswith(MARK):
                message: dict[str, Any] = json.loads(line.removeprefix(MARK))
                if message["word"] == word:
                    return message
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().splitlines()
        raise RuntimeError(f"cannot receive {word!r} from a process: it ended with: {'; '.join(lines[-3:])}")

    def start_turn(self) -> None:
        """Start a turn of the process."""
        if self._process.stdin is not None:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()

    def end(self) -> float:
        """Wait for the end of the process; return its seconds."""
        self._process.wait()
        seconds = time.perf_counter() - self._began_at
        self._errors.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return seconds

    def stop(self) -> None:
        """Kill the process if it runs."""
        if self._process.poll() is None:
            self._process.kill()
        self.end()


def run_in_turns(arms: Sequence[Sequence[Job]], between: Callable[[int], None]) -> list[list[ProcessResult]]:
    """Run each job in its own process: the jobs of an arm at once, the arms in turns, every second turn in reverse.

    So all arms run at the same speeds of the machine, which change within minutes where others use it too.

    Args:
        arms: Jobs of each arm, all with the same number of turns.
        between: Function that is called with the number of the turn, from 0, after each turn of all arms.
    """
    turns = arms[0][0].turns
    processes: list[list[Process]] = []
    try:
        for jobs in arms:
            words = [["-m", "pack_arms.own", job.to_json()] for job in jobs]
            processes.append([Process(line, job.setting.environment()) for line, job in zip(words, jobs, strict=True)])
        ready = [[process.receive("ready") for process in arm] for arm in processes]
        answers: list[list[dict[str, Any]]] = [[] for _ in arms]
        for turn in range(turns):
            numbers = range(len(arms)) if turn % 2 == 0 else reversed(range(len(arms)))
            for number in numbers:
                answers[number] = _one_turn(processes[number], "rested" if turn < turns - 1 else "answer")
            between(turn)
        seconds = [[process.end() for process in arm] for arm in processes]
    except BaseException:
        for process in (process for arm in processes for process in arm):
            process.stop()
        raise
    return [
        [ProcessResult(wall_seconds=wall, ready=first, answer=last) for wall, first, last in zip(*of_arm, strict=True)]
        for of_arm in zip(seconds, ready, answers, strict=True)
    ]


def _one_turn(arm: Sequence[Process], word: str) -> list[dict[str, Any]]:
    """Run a turn of all processes of an arm at once; return their messages at its end."""
    for process in arm:
        process.start_turn()
    with ThreadPoolExecutor(len(arm)) as pool:
        return list(pool.map(lambda process: process.receive(word), arm))


def run_alone(numbers: Sequence[int], setting: Setting, at_once: int) -> list[ProcessResult]:
    """Run arm (a): each trial in its own process, some of them at once."""

    def run(number: int) -> ProcessResult:
        process = Process(["-m", "pack_arms.alone", json.dumps([number, asdict(setting)])], setting.environment())
        try:
            answer = process.receive("answer")
        except BaseException:
            process.stop()
            raise
        return ProcessResult(wall_seconds=process.end(), ready={}, answer=answer)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(run, numbers))
