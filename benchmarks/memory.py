"""Planned memory of packs against the peak of PyTorch's allocator.

    python benchmarks/memory.py                          a random RoBERTa of 4 layers, about two minutes.
    python benchmarks/memory.py --width 768 --layers 12  RoBERTa-base's shape.
    python benchmarks/memory.py --backbone FOLDER        a real one; a deep one is planned from its first blocks.

Each line is a pack that is admitted, trained for a few steps on texts of one length and measured. On a GPU the peak is
``max_memory_allocated``, on a CPU the most memory that PyTorch's allocator held at a time.
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
from gpu import train
from pack_arms.material import new_backbone, own_runner, with_dropout
from pack_arms.meters import reset_peak, status_bytes
from pack_arms.mix import mixed_configuration, request
from pack_arms.report import size_text
from pack_arms.setting import Setting

from search_space.backbones import shape_of
from search_space.dimensions import StackKind
from trial_runner.backbones import config_of
from trial_runner.backbones.locate import embedded_folder
from trial_runner.meta_backbone import MetaPack
from trial_runner.packs.memory import USABLE
from trial_runner.requests import TrainingPlan
from trial_runner.runner import TorchRunner, runner_of
from trial_runner.tasks import Task

STEPS = 4
MOST = 1.15


def peak_of(work: Callable[[], None], device: str) -> int:
    """Return the peak of the allocated bytes beyond those before the work."""
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


def line(runner: TorchRunner, setting: Setting, size: int) -> str:
    """Return a line with the planned memory, the peak and their ratio."""
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
    """Build the runner of a backbone in a folder, for texts of one length."""
    shape = shape_of(config_of(folder))
    texts = {"source": "source", "target": "target", "metric": "loss", "metrics": ("loss",)}
    keys: dict[str, Any] = {"text": ("text",), "label": "label"} if shape.kind is StackKind.ENCODER else texts
    kind = "classification" if shape.kind is StackKind.ENCODER else "summarisation"
    prepared: Any = MetaPack(
        folder, Task(kind=kind, folder="data", max_tokens=tokens, **keys), slots=1, as_gpu=False
    ).objective.task  # type: ignore[attr-defined]
    few = {**prepared.splits, "validation": prepared.splits["validation"].first(batch)}
    return runner_of(replace(prepared, splits=few), backbone=folder, precision="fp32")


def backbone_line(folder: str, tokens: int, batch: int, size: int) -> str:
    """Return the line of a backbone in a folder with published methods, and the growth of the process."""
    plan = TrainingPlan(steps=2, batch_size=batch, evaluate_at_steps=(2,))
    first = real_runner(str(embedded_folder()), 32, batch)  # loads the libraries, which do not count
    train(first, first.probes(plan, 1))
    before = status_bytes("VmRSS")
    reset_peak("cpu")
    runner = real_runner(folder, tokens, batch)
    trials = runner.probes(plan, size)
    began_at = time.process_time()
    planned = runner.open_pack(size).memory_of(*trials).peak_bytes
    seconds = time.process_time() - began_at
    train(runner, trials)
    grown, whole = status_bytes("VmHWM") - before, runner.weights_bytes + int(planned / USABLE)
    peak = peak_of(lambda: train(runner, trials), "cpu")
    return (
        f"{Path(folder).name}, pack of {size}, {batch} x {tokens} tokens: planned {size_text(planned)} "
        f"in {seconds:.1f} CPU s, peak {size_text(peak)}, {planned / peak - 1:+.1%}; with weights planned "
        f"{size_text(whole)}, growth of the process {size_text(grown)}, {whole / grown - 1:+.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbone", metavar="FOLDER", help="folder of a model of transformers")
    parser.add_argument("--width", type=int, default=256, help="width of a random RoBERTa (default 256)")
    parser.add_argument("--layers", type=int, default=4, help="layers of a random RoBERTa (default 4)")
    parser.add_argument("--tokens", type=int, default=64, help="tokens of every text (default 64)")
    parser.add_argument("--batch", type=int, default=16, help="examples of a trial's step (default 16)")
    parser.add_argument("--packs", default="1,2,8", help="sizes of packs (default 1,2,8)")
    arguments = parser.parse_args()
    if arguments.backbone:
        for size in map(int, arguments.packs.split(",")):
            print(backbone_line(arguments.backbone, arguments.tokens, arguments.batch, size), flush=True)
        return
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory(prefix="memory-") as name:
        sizes = {"width": arguments.width, "layers": arguments.layers, "tokens": arguments.tokens}
        folder = new_backbone(Path(name) / "plain", vocabulary=2000, **sizes)
        for dropout in (0.0, 0.1):
            setting = Setting(
                device=device,
                backbone=str(with_dropout(folder, Path(name) / f"dropout {dropout:g}", dropout)),
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
