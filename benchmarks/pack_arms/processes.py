"""Starts the processes of the arms, lets them work in turns, and reads what they answer."""

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
class Answer:
    """What a process said.

    Attributes:
        wall_seconds: Of the whole process.
        ready: What it said when it had loaded; empty for arm (a).
        answer: What it said in the end.
    """

    wall_seconds: float
    ready: dict[str, Any]
    answer: dict[str, Any]


class Process:
    """One process of an arm."""

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

    def hear(self, word: str) -> dict[str, Any]:
        """The next thing it says.

        Raises:
            RuntimeError: If it ends without it; with the end of its errors.
        """
        for line in self._process.stdout or ():
            if line.startswith(MARK):
                said: dict[str, Any] = json.loads(line.removeprefix(MARK))
                if said["word"] == word:
                    return said
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().splitlines()
        raise RuntimeError(f"a process of the benchmark must answer; it ended with: {'; '.join(lines[-3:])}")

    def tell(self) -> None:
        """Let it begin."""
        if self._process.stdin is not None:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()

    def end(self) -> float:
        """Wait for its end; its seconds."""
        self._process.wait()
        seconds = time.perf_counter() - self._began_at
        self._errors.close()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return seconds

    def stop(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
        self.end()


def run_in_turns(arms: Sequence[Sequence[Job]], between: Callable[[int], None]) -> list[list[Answer]]:
    """Every job in a process of its own: those of an arm at once, the arms in turns, every other time backwards.

    So all arms see the machine at the same speeds, which change within minutes where others use it too.

    Args:
        arms: Their jobs, all of as many turns.
        between: Called after each turn of all arms, with its number from 0 on.
    """
    turns = arms[0][0].turns
    processes: list[list[Process]] = []
    try:
        for jobs in arms:
            words = [["-m", "pack_arms.own", job.to_json()] for job in jobs]
            processes.append([Process(one, job.setting.environment()) for one, job in zip(words, jobs, strict=True)])
        ready = [[process.hear("ready") for process in arm] for arm in processes]
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
        [Answer(wall_seconds=wall, ready=first, answer=last) for wall, first, last in zip(*of_arm, strict=True)]
        for of_arm in zip(seconds, ready, answers, strict=True)
    ]


def _one_turn(arm: Sequence[Process], word: str) -> list[dict[str, Any]]:
    """Let all processes of an arm work at once; what they say when they have done."""
    for process in arm:
        process.tell()
    with ThreadPoolExecutor(len(arm)) as pool:
        return list(pool.map(lambda process: process.hear(word), arm))


def run_alone(numbers: Sequence[int], setting: Setting, at_once: int) -> list[Answer]:
    """Arm (a): each trial in a process of its own, so many at a time."""

    def one(number: int) -> Answer:
        process = Process(["-m", "pack_arms.alone", json.dumps([number, asdict(setting)])], setting.environment())
        try:
            answer = process.hear("answer")
        except BaseException:
            process.stop()
            raise
        return Answer(wall_seconds=process.end(), ready={}, answer=answer)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, numbers))
