"""Arms (b) and (c): this library's loop over packs of one trial or more. A process, started by `processes`."""

import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch

from pack_arms.material import own_runner
from pack_arms.meters import counts_of, held_bytes, kept_bytes, now, peak_bytes, product_flops, reset_peak
from pack_arms.mix import budget_configuration, equal_configuration, mixed_configuration, request
from pack_arms.setting import Job, Setting
from pack_arms.wire import say, wait
from search_space.counting import count
from trial_runner.pack import TrialPack
from trial_runner.requests import Failure, Reading, TrialRequest
from trial_runner.runner import TorchRunner

__all__ = ["Timing", "measured"]

_WARM_STEPS = 3
_TIMED_STEPS = 20
"""Of a pack that is not trained to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one pack took.

    Attributes:
        trials: Numbers of its trials.
        seconds: From the first admission to the last reading; 0 if it was not trained to its end.
        step_seconds: Of a step of the whole pack, without first steps and evaluation.
        peak_bytes: Since the first admission, as `meters.peak_bytes`.
        scores: Of the trials at their end.
    """

    trials: tuple[int, ...]
    seconds: float
    step_seconds: float
    peak_bytes: int
    scores: tuple[float, ...]


def open_pack(runner: TorchRunner, slots: int, *, with_graph: bool) -> TrialPack:
    """An empty pack, whose steps on a GPU are CUDA graphs or launched kernel by kernel."""
    return runner.open_pack(slots, uses_graphs=with_graph)


def requests(kind: str, numbers: tuple[int, ...], setting: Setting) -> list[TrialRequest]:
    """The trials of a pack, of one of the kinds of `Job`."""
    shape = setting.shape()
    if kind == "mixed":
        return [request(number, mixed_configuration(number, shape), setting) for number in numbers]
    same = budget_configuration(shape) if kind == "budget" else equal_configuration(len(numbers), shape)
    if kind == "wide":
        return [request(0, same, setting, rows=len(numbers))]
    return [request(number, same, setting) for number in numbers]


def advance(pack: TrialPack, steps: int) -> dict[int, float]:
    """Train; the scores of what was measured, by trial. A trial that fails ends the benchmark."""
    results = pack.advance(steps)
    failed = next((result for result in results if isinstance(result, Failure)), None)
    if failed is not None:
        raise RuntimeError(f"every trial must reach its end; trial {failed.trial} did not: {failed.reason}.")
    return {result.trial: result.score for result in results if isinstance(result, Reading)}


def measured(job: Job, kind: str, numbers: tuple[int, ...], runner: TorchRunner) -> Timing:
    """Train one pack, to its end or for a few steps; only the job's own kind is trained to its end."""
    device = job.setting.device
    trials = requests(kind, numbers, job.setting)
    is_whole = kind == job.kind and job.extent == "whole"
    timed = max(1, job.setting.steps - _WARM_STEPS - 1)
    timed = timed if is_whole else min(timed, _TIMED_STEPS)
    reset_peak(device)
    began_at = now(device)
    pack = open_pack(runner, len(trials), with_graph=job.with_graph)
    for trial in trials:
        pack.admit(trial)
    advance(pack, _WARM_STEPS)
    warm_at = now(device)
    advance(pack, timed)
    trained_at = now(device)
    scores = advance(pack, job.setting.steps) if is_whole else {}
    return Timing(
        trials=numbers,
        seconds=now(device) - began_at if is_whole else 0.0,
        step_seconds=(trained_at - warm_at) / timed,
        peak_bytes=peak_bytes(device),
        scores=tuple(scores[number] for number in numbers) if is_whole else (),
    )


def counted(job: Job, runner: TorchRunner) -> dict[str, Any] | None:
    """Counts of a step of the first pack."""
    if job.counts == "none":
        return None
    trials = requests(job.kind, job.packs[0], job.setting)
    pack = runner.open_pack(len(trials))
    for trial in trials:
        pack.admit(trial)
    known = [*runner.backbone.model.parameters(), *runner.backbone.model.buffers()]
    storages = {tensor.untyped_storage().data_ptr() for tensor in known}
    kept = kept_bytes(partial(advance, pack, 1), storages)
    if job.counts == "kept":
        return {"kept_bytes": kept}
    return {"kept_bytes": kept, **asdict(counts_of(partial(advance, pack, 1), job.setting.device))}


def trained_parameters(job: Job, runner: TorchRunner) -> int:
    """Of the first trial: its deltas and its head."""
    shape = runner.backbone.shape
    configuration = requests(job.kind, job.packs[0], job.setting)[0].configuration
    return count(configuration, shape).trained + len(runner.task.labels) * (shape.width + 1)


def product(setting: Setting, runner: TorchRunner, rows: int) -> float:
    """FLOP/s of the widest product of a pass over so many examples, as the backbone computes it."""
    shape = (rows * setting.tokens, runner.backbone.shape.width, runner.backbone.shape.ffn_width)
    return product_flops(setting.device, shape, torch.bfloat16 if runner.precision == "bf16" else torch.float32)


def answer(job: Job, runner: TorchRunner) -> dict[str, Any]:
    """Everything the job asks for."""
    held, first = held_bytes(job.setting.device), job.packs[0]
    if job.kind == "mixed":
        warm_up(job, runner)
    flops = product(job.setting, runner, len(first) * job.setting.batch_size) if job.kind == "mixed" else 0.0
    whole = [] if job.extent == "none" else [measured(job, job.kind, numbers, runner) for numbers in job.packs]
    return {
        "held_bytes": held,
        "timings": [asdict(timing) for timing in whole],
        "beside": {kind: asdict(measured(job, kind, first, runner)) for kind in job.beside},
        "product_flops": flops,
        "counts": counted(job, runner),
        "trained_parameters": trained_parameters(job, runner),
    }


def warm_up(job: Job, runner: TorchRunner) -> None:
    """Let the process do once what it does only once; a worker of a study lives long."""
    pack = runner.open_pack(1)
    pack.admit(requests("mixed", (0,), job.setting)[0])
    advance(pack, _WARM_STEPS)


def main() -> None:
    job = Job.from_json(sys.argv[1])
    began_at = time.perf_counter()
    runner = own_runner(job.setting)
    backbone_bytes = sum(one.numel() * one.element_size() for one in runner.backbone.model.parameters())
    say(
        "ready",
        {
            "load_seconds": time.perf_counter() - began_at,
            "precision": runner.precision,
            "backbone_bytes": backbone_bytes,
            "validation_examples": len(runner.task.splits["validation"]),
        },
    )
    wait()
    say("answer", answer(job, runner))


if __name__ == "__main__":
    main()
