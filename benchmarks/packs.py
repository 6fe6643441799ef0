"""Packs of different trials against the same trials alone: throughput, memory, and the cost of the differences.

    python benchmarks/packs.py               on a GPU if there is one, else on the CPU.
    python benchmarks/packs.py --quick       a few steps of a few trials, as a check.

Three arms train the same trials to their ends with the same seeds on the same data:

(a) each trial in its own process with transformers' ``Trainer`` and peft's method if peft has it; start of the
    process, load and evaluation count;
(b) packs of one trial in the loop of this library, in one process; admission, first steps and evaluation count;
(c) packs of 2 to 32 trials; the same parts count.

All arms run without dropout and with a rate of 0.1, as real backbones are trained (--dropout). The trials differ in
form, bottleneck, insertion, gate and learning rate (`pack_arms.mix`). On a CPU every arm has one process per core
(--processes: fewer) with one thread each. Times are processor time, which does not depend on other load. On a GPU every
arm has one process. The default takes most of two hours on two cores; fewer --packs, --dropout, --alone and --steps
take less.

The speed of a CPU changes within minutes, so there the arms take turns of a few steps. The memory of a GPU would not
hold all arms at once; there they run in sequence, in several rounds, and medians are shown.

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
from pack_arms.material import new_backbone, with_dropout
from pack_arms.report import Aims, aim_lines, arm_lines
from pack_arms.rounds import Plan, Round, run_round
from pack_arms.setting import Setting

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
    add("--width", type=int, default=_BASE_WIDTH, help=f"width of a random RoBERTa (default {_BASE_WIDTH})")
    add("--layers", type=int, default=_BASE_LAYERS, help=f"layers of a random RoBERTa (default {_BASE_LAYERS})")
    add("--tokens", type=_numbers, metavar="T,…", help="tokens of a text (default 24 on a CPU, 32,128 on a GPU)")
    add(
        "--dropout",
        type=_rates,
        metavar="P,…",
        default=(0.0, 0.1),
        help="dropout rates of the backbone (default 0,0.1: all arms twice)",
    )
    add("--batch", type=int, help="examples of a trial's step (default 16 on a CPU, 32 on a GPU)")
    add("--steps", type=int, default=200, help="steps of a trial (default 200)")
    add("--packs", type=_numbers, metavar="K,…", default=(2, 4, 8, 16, 32), help="sizes of packs (default 2,4,8,16,32)")
    add("--alone", type=int, default=8, help="trials of arm (a), the first of the mix (default 8)")
    add("--rounds", type=int, help="rounds of all arms (default 1 on a CPU, 3 on a GPU)")
    add("--processes", type=int, help="processes of an arm on a CPU (default: one per core)")
    add("--precision", choices=("auto", "fp32", "bf16"), default="auto", help="default auto: bf16 where it is fast")
    add("--quick", action="store_true", help=f"{_QUICK_STEPS} steps, packs up to {_QUICK_PACK}, one round")
    arguments = parser.parse_args(words)
    if arguments.steps < _FEWEST_STEPS:
        parser.error(f"--steps must be at least {_FEWEST_STEPS}: the first are not timed; got {arguments.steps}.")
    if arguments.alone < 1:
        parser.error(f"--alone must be at least 1; got {arguments.alone}.")
    if min(arguments.packs) < 2:
        parser.error(f"--packs must be sizes of at least 2 (arm (b) has packs of 1); got {min(arguments.packs)}.")
    if arguments.quick and min(arguments.packs) > _QUICK_PACK:
        parser.error(f"--packs with --quick must have a size of at most {_QUICK_PACK}; got {min(arguments.packs)}.")
    return arguments


def plans(arguments: argparse.Namespace, scratch: Path) -> Iterator[Plan]:
    """Yield a plan for each number of tokens and each dropout rate."""
    has_gpu = torch.cuda.is_available() if arguments.device == "auto" else arguments.device == "cuda"
    name = arguments.backbone or ("random" if has_gpu else _EMBEDDED)
    lengths = arguments.tokens or ((32, _LONG_TOKENS) if has_gpu else (24,))
    folder = {_EMBEDDED: embedded_folder(), "random": scratch / "random"}.get(name, Path(name))
    if name == "random":
        new_backbone(folder, width=arguments.width, layers=arguments.layers, tokens=max(lengths))
    packs = tuple(sorted(arguments.packs))
    for tokens, share in itertools.product(lengths, arguments.dropout):
        copy = scratch / f"dropout {share:g}" / folder.name
        setting = Setting(
            device="cuda" if has_gpu else "cpu",
            backbone=str(copy if copy.exists() else with_dropout(folder, copy, share)),
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
    """Run the rounds of a plan and yield the printed lines."""
    setting = plan.setting
    rounds = rounds or (1 if plan.turns > 1 else 3)
    yield f"{Path(setting.backbone).name}: {_shape_line(plan)}"
    done: list[Round] = []
    for index in range(rounds):
        done.append(run_round(plan, partial(_note, f"round {index + 1} of {rounds}")))
    yield from _setting_lines(done[0])
    yield from arm_lines(done)
    difference = max(one.score_difference(size) for one in done for size in plan.packs)
    yield f"scores of packed trials differ from those of (b) by at most {difference:.4f}"
    is_gpu = setting.device == "cuda"
    if setting.precision != "bf16":
        yield f"The aims are for bf16; this run has {setting.precision}."
    yield from aim_lines(done, _GPU_AIMS.get(setting.tokens, _GPU_AIMS[_LONG_TOKENS]) if is_gpu else _CPU_AIMS)


def _shape_line(plan: Plan) -> str:
    setting, shape = plan.setting, plan.setting.shape()
    return (
        f"{shape.encoder_layers} layers of width {shape.width}, batch {setting.batch_size} x {setting.tokens} tokens, "
        f"dropout {setting.dropout:g}, {setting.steps} steps in {plan.turns} turns; an arm has {plan.workers} "
        f"processes at a time, {setting.threads} threads each"
    )


def _setting_lines(first: Round) -> Iterator[str]:
    ready = first.singles[0].ready
    sources = [one.answer["source"] for one in first.alone.values()]
    yield (
        f"{first.plan.setting.precision}; (a): {len(sources)} trials, {sources.count('peft')} with peft, the others "
        f"with deltas of this library in Trainer; a worker of (b) and (c) loads once, {ready['load_seconds']:.1f} s "
        "not counted"
    )


def _note(title: str, arm: str) -> None:
    print(f"{title}: {arm}", file=sys.stderr, flush=True)


def _rates(text: str) -> tuple[float, ...]:
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
