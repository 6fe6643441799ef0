"""Program of arms (b) and (c): packs in the loop of this library; `processes` starts it."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pack_arms.material import own_runner
from pack_arms.meters import held_bytes, now, peak_bytes, reset_peak
from pack_arms.mix import equal_configuration, mixed_configuration, request
from pack_arms.setting import Job, Setting
from pack_arms.wire import send, wait_for_parent
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import Failure, Reading, TrialRequest
from trial_runner.runner import TorchRunner

_WARM_STEPS = 3
_TIMED_STEPS = 20
"""Timed steps of a pack that is not trained to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Time and memory of one pack.

    Attributes:
        trials: Numbers of its trials.
        seconds: Time from the first admission to the last reading, without pauses.
        step_seconds: Time of a step of the whole pack, without first steps and evaluation.
        peak_bytes: Peak of memory, see `meters.peak_bytes`.
        scores: Scores of the trials at their end; empty before it.
    """

    trials: tuple[int, ...]
    seconds: float
    step_seconds: float
    peak_bytes: int
    scores: tuple[float, ...]


def open_pack(runner: TorchRunner, trials: Sequence[TrialRequest]) -> TrialPack:
    """Open a pack and admit trials."""
    pack = runner.open_pack(len(trials))
    for trial in trials:
        pack.admit(trial)
    return pack


def requests(kind: str, numbers: tuple[int, ...], setting: Setting) -> list[TrialRequest]:
    """Build the trials of a pack, ``mixed`` or ``equal``."""
    shape = setting.shape()
    if kind == "mixed":
        return [request(number, mixed_configuration(number, shape), setting) for number in numbers]
    same = equal_configuration(len(numbers), shape)
    return [request(number, same, setting) for number in numbers]


def advance(pack: TrialPack, steps: int) -> dict[int, float]:
    """Train; return the measured scores by trial.

    Raises:
        RuntimeError: If a trial fails.
    """
    results = pack.advance(steps)
    failed = next((result for result in results if isinstance(result, Failure)), None)
    if failed is not None:
        raise RuntimeError(f"cannot train trial {failed.trial} to its end: {failed.reason}.")
    return {result.trial: result.score for result in results if isinstance(result, Reading)}


class PackTraining:
    """Training of one pack in parts, with its timing."""

    def __init__(self, job: Job, kind: str, numbers: tuple[int, ...], runner: TorchRunner) -> None:
        """Prepare the trials; train nothing."""
        self._numbers = numbers
        self._runner = runner
        self._setting = job.setting
        self._trials = requests(kind, numbers, job.setting)
        self._pack: TrialPack | None = None
        self._step = 0
        self._seconds, self._timed_seconds = 0.0, 0.0
        self._peak_bytes = 0
        self._scores: dict[int, float] = {}

    def train(self, goal: int) -> None:
        """Train to a step; the first call admits the trials, the last one releases them."""
        device, last = self._setting.device, self._setting.steps
        reset_peak(device)
        began_at = now(device)
        pack = self._pack = self._pack or open_pack(self._runner, self._trials)
        for until in sorted({min(_WARM_STEPS, goal), min(last - 1, goal), goal}):
            if until <= self._step:
                continue
            part_began_at = now(device)
            self._scores |= advance(pack, until - self._step)
            if self._step >= _WARM_STEPS and until < last:
                self._timed_seconds += now(device) - part_began_at
            self._step = until
        self._seconds += now(device) - began_at
        self._peak_bytes = max(self._peak_bytes, peak_bytes(device))
        if self._step == last:
            self._pack = None

    def timing(self) -> Timing:
        """Return the timing of the steps so far."""
        timed_steps = min(self._step, self._setting.steps - 1) - _WARM_STEPS
        return Timing(
            trials=self._numbers,
            seconds=self._seconds,
            step_seconds=self._timed_seconds / timed_steps,
            peak_bytes=self._peak_bytes,
            scores=tuple(self._scores[number] for number in self._numbers if number in self._scores),
        )


def few_steps(setting: Setting) -> int:
    """Return the number of steps of a pack that is not trained to its end."""
    return min(setting.steps - 1, _WARM_STEPS + _TIMED_STEPS)


def answer(job: Job, runner: TorchRunner, rest: Callable[[], None]) -> dict[str, Any]:
    """Train the packs of a job and return their timings.

    Args:
        runner: Runner with the backbone of the job.
        rest: Function that is called between turns.
    """
    held, first = held_bytes(job.setting.device), job.packs[0]
    warm_up(job, runner)
    few = few_steps(job.setting)
    trainings = [PackTraining(job, "mixed", numbers, runner) for numbers in job.packs]
    equal = [PackTraining(job, "equal", first, runner)] if job.has_equal else []
    for turn in range(1, job.turns + 1):
        for training in trainings:
            training.train(job.setting.steps * turn // job.turns)
        for training in equal:
            training.train(few * turn // job.turns)
        if turn < job.turns:
            rest()
    return {
        "held_bytes": held,
        "timings": [asdict(training.timing()) for training in trainings],
        "equal": [asdict(training.timing()) for training in equal],
    }


def warm_up(job: Job, runner: TorchRunner) -> None:
    """Train a few steps, so that one-time costs are not timed; a worker of a study runs for long."""
    advance(open_pack(runner, requests("mixed", (0,), job.setting)), _WARM_STEPS)


def end_turn() -> None:
    """Report the end of a turn and wait for the next one."""
    send("rested", {})
    wait_for_parent()


def main() -> None:
    job = Job.from_json(sys.argv[1])
    began_at = time.perf_counter()
    runner = own_runner(job.setting)
    send("ready", {"load_seconds": time.perf_counter() - began_at})
    wait_for_parent()
    send("answer", answer(job, runner, end_turn))


if __name__ == "__main__":
    main()
