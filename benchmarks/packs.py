"""Packs of unlike trials against the same trials alone: throughput, memory, and what unlikeness costs.

    python benchmarks/packs.py               on a GPU if there is one, else on the CPU
    python benchmarks/packs.py --quick       a few steps of a few trials, to see that it works

Three arms train the same trials with the same seeds on the same data, all steps, no early stopping:

(a) every trial in a process of its own with transformers' ``Trainer``, and peft's method where peft has it; start of
    the process, load and evaluation count;
(b) this library's loop, packs of one trial in one process; admission, first steps and evaluation count;
(c) packs of 2 to 32; the same count.

Every arm is run without dropout and with a tenth of it, which real backbones are trained with (--dropout). The
trials differ in form, bottleneck, insertion, gate and learning rate (`pack_arms.mix`). On a CPU every arm has as many
processes as there are cores (--processes: fewer), with one thread each, and what counts is processor time, which other
work takes nothing from; on a GPU every arm has one. The default takes most of two hours on two cores; fewer --packs,
--dropout, --alone and --steps are shorter.

A CPU's speed changes within minutes, so there the arms take turns of a few steps. A GPU's memory would not hold all
arms at once; there they follow one another, for several rounds, whose medians are shown.

"vs equal" is the heterogeneity efficiency: the mixed pack's throughput over that of as many equal adapters.
"""

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from pack_arms.material import dropping, new_backbone
from pack_arms.rounds import Plan, Round, run_round
from pack_arms.setting import Setting
from pack_arms.tables import Aims, aim_lines, arm_lines

from trial_runner.backbones.locate import embedded_folder
from trial_runner.runner import chosen_precision

_EMBEDDED = "embedded"
_BASE_WIDTH, _BASE_LAYERS, _LONG_TOKENS = 768, 12, 128
_CPU_AIMS = Aims(to_alone=2)
_GPU_AIMS = {32: Aims(to_alone=10, to_single=2, efficiency=0.8), _LONG_TOKENS: Aims(to_alone=4, efficiency=0.8)}
_FEWEST_STEPS, _QUICK_STEPS, _QUICK_PACK = 8, 8, 4
_STEPS_OF_TURN = 4


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default auto")
    add("--backbone", metavar="embedded|random|FOLDER", help="default: embedded on a CPU, random on a GPU")
    add("--width", type=int, default=_BASE_WIDTH, help=f"of a random RoBERTa (default {_BASE_WIDTH})")
    add("--layers", type=int, default=_BASE_LAYERS, help=f"of a random RoBERTa (default {_BASE_LAYERS})")
    add("--tokens", type=_numbers, metavar="T,…", help="of a text (default 24 on a CPU, 32,128 on a GPU)")
    add(
        "--dropout",
        type=_shares,
        metavar="P,…",
        default=(0.0, 0.1),
        help="of the backbone (default 0,0.1: all arms twice)",
    )
    add("--batch", type=int, help="examples of a trial's step (default 16 on a CPU, 32 on a GPU)")
    add("--steps", type=int, default=200, help="of a trial (default 200)")
    add("--packs", type=_numbers, metavar="K,…", default=(2, 4, 8, 16, 32), help="default 2,4,8,16,32")
    add("--alone", type=int, default=8, help="trials of arm (a), the first of the mix (default 8)")
    add("--rounds", type=int, help="default 1 on a CPU, 3 on a GPU")
    add("--processes", type=int, help="of an arm, on a CPU (default: one a core)")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto", help="default auto: bf16 where it is fast")
    add("--quick", action="store_true", help=f"{_QUICK_STEPS} steps, packs up to {_QUICK_PACK}, one round")
    arguments = parser.parse_args(words)
    if arguments.steps < _FEWEST_STEPS:
        parser.error(f"--steps must be at least {_FEWEST_STEPS}: the first are not timed; got {arguments.steps}.")
    if arguments.alone < 1:
        parser.error(f"--alone must be at least 1; got {arguments.alone}.")
    if min(arguments.packs) < 2:
        parser.error(f"--packs must be sizes of at least 2, arm (b) being packs of 1; got {min(arguments.packs)}.")
    if arguments.quick and min(arguments.packs) > _QUICK_PACK:
        parser.error(f"--quick needs a size of --packs of at most {_QUICK_PACK}; got {min(arguments.packs)}.")
    return arguments


def plans(arguments: argparse.Namespace, scratch: Path) -> Iterator[Plan]:
    """What to compare, a plan for each number of tokens and share of dropout."""
    has_gpu = torch.cuda.is_available() if arguments.device == "auto" else arguments.device == "cuda"
    name = arguments.backbone or ("random" if has_gpu else _EMBEDDED)
    lengths = arguments.tokens or ((32, _LONG_TOKENS) if has_gpu else (24,))
    folder = {_EMBEDDED: embedded_folder(), "random": scratch / "random"}.get(name, Path(name))
    if name == "random":
        new_backbone(folder, width=arguments.width, layers=arguments.layers, tokens=max(lengths))
    packs = tuple(sorted(arguments.packs))
    for tokens, share in itertools.product(lengths, arguments.dropout):
        own = scratch / f"dropout {share:g}" / folder.name
        setting = Setting(
            device="cuda" if has_gpu else "cpu",
            backbone=str(own if own.exists() else dropping(folder, own, share)),
            dropout=share,
            embedded_task=name == _EMBEDDED,
            tokens=tokens,
            batch_size=arguments.batch or (32 if has_gpu else 16),
            steps=_QUICK_STEPS if arguments.quick else arguments.steps,
            threads=(os.cpu_count() or 1) if has_gpu else 1,
            precision=chosen_precision(arguments.precision, torch.device("cuda" if has_gpu else "cpu")),
        )
        yield Plan(
            setting=setting,
            workers=1 if has_gpu else arguments.processes or os.cpu_count() or 1,
            packs=tuple(size for size in packs if size <= _QUICK_PACK) if arguments.quick else packs,
            alone_trials=2 if arguments.quick else arguments.alone,
            turns=1 if has_gpu else setting.steps // _STEPS_OF_TURN,
        )


def compare(plan: Plan, rounds: int | None) -> Iterator[str]:
    """The lines of a plan."""
    setting = plan.setting
    rounds = rounds or (1 if plan.turns > 1 else 3)
    yield f"{Path(setting.backbone).name}: {_shape_line(plan)}"
    done: list[Round] = []
    for index in range(rounds):
        done.append(run_round(plan, partial(_note, f"round {index + 1} of {rounds}")))
    yield from _about(done[0])
    yield from arm_lines(done)
    apart = max(one.score_difference(size) for one in done for size in plan.packs)
    yield f"scores of packed trials differ from those of (b) by at most {apart:.4f}"
    is_gpu = setting.device == "cuda"
    if setting.precision != "bf16":
        yield f"the aims are those of bf16; this run's products are {setting.precision}"
    yield from aim_lines(done, _GPU_AIMS.get(setting.tokens, _GPU_AIMS[_LONG_TOKENS]) if is_gpu else _CPU_AIMS)


def _shape_line(plan: Plan) -> str:
    setting, shape = plan.setting, plan.setting.shape()
    return (
        f"{shape.encoder_layers} layers of width {shape.width}, batch {setting.batch_size} x {setting.tokens} tokens, "
        f"dropout {setting.dropout:g}, {setting.steps} steps in {plan.turns} turns; an arm has {plan.workers} "
        f"processes at a time, {setting.threads} threads each"
    )


def _about(first: Round) -> Iterator[str]:
    ready = first.singles[0].ready
    whose = [one.answer["whose"] for one in first.alone.values()]
    yield (
        f"{first.plan.setting.precision}; (a): {len(whose)} trials, {whose.count('peft')} of them peft's, the others "
        f"this library's deltas in Trainer; a worker of (b) and (c) loads once, {ready['load_seconds']:.1f} s not "
        "counted"
    )


def _note(title: str, arm: str) -> None:
    print(f"{title}: {arm}", file=sys.stderr, flush=True)


def _shares(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def main() -> None:
    arguments = arguments_of()
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"torch {torch.__version__}, {os.cpu_count()} cores, load {load}", flush=True)
    with tempfile.TemporaryDirectory(prefix="packs-") as name:
        scratch = Path(name)
        for plan in list(plans(arguments, scratch)):
            for line in compare(plan, 1 if arguments.quick else arguments.rounds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
