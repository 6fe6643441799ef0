"""The plan of a pack's memory against the peak of PyTorch's allocator.

    python benchmarks/memory.py                          a random RoBERTa of 4 layers, about two minutes
    python benchmarks/memory.py --width 768 --layers 12  RoBERTa-base's shape
    python benchmarks/memory.py --backbone FOLDER        a real one, planned by its first blocks where it is deep

Every line is a pack that is admitted, trained for a few steps on texts of one length and measured. On a GPU the peak is
``max_memory_allocated``, on a CPU the most that PyTorch's allocator had given out at a time.
"""

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pack_arms.material import dropping, new_backbone, own_runner
from pack_arms.meters import reset_peak, status_bytes
from pack_arms.mix import mixed_configuration, request
from pack_arms.setting import Setting
from pack_arms.tables import size_text

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from trial_runner.backbones import config_of
from trial_runner.backbones.locate import embedded_folder
from trial_runner.meta_backbone import ImaginedPack
from trial_runner.packs.memory import USABLE
from trial_runner.requests import Failure, TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner, runner_of
from trial_runner.tasks import Task

STEPS = 4
MOST = 1.15


def peak_of(work: Callable[[], None], device: str) -> int:
    """The most bytes that the allocator gave out beyond those before."""
    if device == "cuda":
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    results: Any = profile.profiler
    events = [one for one in results.kineto_results.events() if one.name() == "[memory]"]
    return max(itertools.accumulate(one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())))


def train(runner: TorchRunner, trials: list[TrialRequest]) -> None:
    """Admit, train and measure."""
    pack = runner.open_pack(len(trials))
    for trial in trials:
        pack.admit(trial)
    failed = [result for result in pack.advance(STEPS) if isinstance(result, Failure)]
    if failed:
        raise RuntimeError(f"every trial must reach its end; trial {failed[0].trial} did not: {failed[0].reason}.")


def line(runner: TorchRunner, setting: Setting, size: int) -> str:
    """Plan, peak, and the one over the other."""
    shape = setting.shape()
    trials = [request(number, mixed_configuration(number, shape), setting) for number in range(size)]
    planned = runner.open_pack(size).memory_of(*trials).peak_bytes
    peak = peak_of(lambda: train(runner, trials), setting.device)
    share = planned / peak
    return (
        f"pack of {size}, dropout {setting.dropout:g}: planned {size_text(planned)}, peak {size_text(peak)}, "
        f"{share - 1:+.1%}; aim 0 to {MOST - 1:.0%}{'' if 1 <= share <= MOST else '  MISSED'}"
    )


def real_runner(folder: str, tokens: int, batch: int) -> TorchRunner:
    """Of a backbone of a folder, for texts of one length."""
    own = shape_of(config_of(folder))
    texts = {"source": "source", "target": "target", "metric": "loss", "metrics": ("loss",)}
    keys: dict[str, Any] = {"text": ("text",), "label": "label"} if own.kind is StackKind.ENCODER else texts
    kind = "classification" if own.kind is StackKind.ENCODER else "summarisation"
    prepared: Any = ImaginedPack(
        folder, Task(kind=kind, folder="data", max_tokens=tokens, **keys), slots=1, as_gpu=False
    )._objective._task  # type: ignore[attr-defined]
    few = {**prepared.splits, "validation": prepared.splits["validation"].first(batch)}
    return runner_of(replace(prepared, splits=few), backbone=folder, precision="fp32")


def of_backbone(folder: str, tokens: int, batch: int, size: int) -> str:
    """The same of a backbone of a folder, trials of published methods, beside what the process grew by."""
    plan = TrainingPlan(steps=2, batch_size=batch, evaluate_at_steps=(2,))
    first = real_runner(str(embedded_folder()), 32, batch)  # libraries are loaded with it, and do not count
    train(first, first._probes(plan, 1))
    before = status_bytes("VmRSS")
    reset_peak("cpu")
    runner = real_runner(folder, tokens, batch)
    trials = runner._probes(plan, size)
    began_at = time.process_time()
    planned = runner.open_pack(size).memory_of(*trials).peak_bytes
    seconds = time.process_time() - began_at
    train(runner, trials)
    grown, whole = status_bytes("VmHWM") - before, runner.weights_bytes + int(planned / USABLE)
    peak = peak_of(lambda: train(runner, trials), "cpu")
    return (
        f"{Path(folder).name}, pack of {size}, {batch} x {tokens} tokens: planned {size_text(planned)} "
        f"in {seconds:.1f} CPU s, peak {size_text(peak)}, {planned / peak - 1:+.1%}; with weights the process was to "
        f"grow by {size_text(whole)} and grew by {size_text(grown)}, {whole / grown - 1:+.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", metavar="FOLDER", help="of a model of transformers")
    parser.add_argument("--width", type=int, default=256, help="default 256")
    parser.add_argument("--layers", type=int, default=4, help="default 4")
    parser.add_argument("--tokens", type=int, default=64, help="of every text (default 64)")
    parser.add_argument("--batch", type=int, default=16, help="examples of a trial's step (default 16)")
    parser.add_argument("--packs", default="1,2,8", help="sizes of packs (default 1,2,8)")
    arguments = parser.parse_args()
    if arguments.backbone:
        for size in map(int, arguments.packs.split(",")):
            print(of_backbone(arguments.backbone, arguments.tokens, arguments.batch, size), flush=True)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory(prefix="memory-") as name:
        sizes = {"width": arguments.width, "layers": arguments.layers, "tokens": arguments.tokens}
        folder = new_backbone(Path(name) / "plain", vocabulary=2000, **sizes)
        for dropout in (0.0, 0.1):
            setting = Setting(
                device=device,
                backbone=str(dropping(folder, Path(name) / f"dropout {dropout:g}", dropout)),
                embedded_task=False,
                tokens=arguments.tokens,
                batch_size=arguments.batch,
                steps=STEPS,
                threads=1,
                dropout=dropout,
            )
            for size in map(int, arguments.packs.split(",")):
                runner = own_runner(setting)
                print(line(runner, setting, size), flush=True)
                runner.close()


if __name__ == "__main__":
    main()
