"""Starts the processes of the arms, all of an arm at a time, and reads what they answer."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import IO, Any

from pack_arms.setting import Job, Setting
from pack_arms.wire import MARK

__all__ = ["Answer", "run_alone", "run_jobs"]


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


class _Process:
    """One process of an arm."""

    def __init__(self, module: str, argument: str, setting: Setting) -> None:
        self._began_at = time.perf_counter()
        self._errors: IO[str] = tempfile.TemporaryFile("w+", prefix="packs-")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, argument],
            env=setting.environment(),
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


def run_jobs(jobs: Sequence[Job]) -> list[Answer]:
    """Every job in a process of its own, all at once; they begin when the last one has loaded."""
    processes = [_Process("pack_arms.own", job.to_json(), job.setting) for job in jobs]
    try:
        ready = [process.hear("ready") for process in processes]
        for process in processes:
            process.tell()
        with ThreadPoolExecutor(len(processes)) as pool:
            answers = list(pool.map(lambda process: process.hear("answer"), processes))
        seconds = [process.end() for process in processes]
    except BaseException:
        for process in processes:
            process.stop()
        raise
    return [
        Answer(wall_seconds=wall, ready=first, answer=last)
        for wall, first, last in zip(seconds, ready, answers, strict=True)
    ]


def run_alone(numbers: Sequence[int], setting: Setting, at_once: int) -> list[Answer]:
    """Arm (a): each trial in a process of its own, so many at a time."""

    def one(number: int) -> Answer:
        process = _Process("pack_arms.alone", json.dumps([number, asdict(setting)]), setting)
        try:
            answer = process.hear("answer")
        except BaseException:
            process.stop()
            raise
        return Answer(wall_seconds=process.end(), ready={}, answer=answer)

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, numbers))
