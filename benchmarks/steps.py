"""What a training step takes on a CPU, and what it would take without what makes it quick.

    python benchmarks/steps.py                     the shipped example's steps, about two minutes
    python benchmarks/steps.py --beside ../older   and those of another checkout
    python benchmarks/steps.py --shares            where the time of a step goes, in fp32 and in bf16
    python benchmarks/steps.py --shares --backbone FOLDER

Every arm is a process with one thread that trains the same pack of four searched trials, in turns of a few steps, every
other time backwards: a machine's speed changes within minutes. Milliseconds are those of the processor, so that others
may use the machine; of an arm the median of its turns, and the median of what it took in a turn to what the first arm
took in it. Shares are by PyTorch's profiler; the products of frozen weights are computed again by themselves.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import PropertyMock, patch

from pack_arms.processes import Process
from pack_arms.wire import say, wait

ROOT = Path(__file__).parents[1]
TURNS, STEPS, WARM_STEPS, PACK = 12, 10, 10, 4
ENDLESS = 1_000_000


@dataclass(frozen=True)
class Arm:
    """One way to compute the same steps.

    Attributes:
        wide: Whether a pass is as wide as what its products compute, and not as in fp32.
        keeps: Whether freed memory is kept.
        has_large_pages: Whether memory comes in large pages.
        folder: Checkout whose code it runs.
    """

    wide: bool = True
    keeps: bool = True
    has_large_pages: bool = True
    folder: Path = ROOT


def arms(beside: Path | None) -> dict[str, Arm]:
    """All of them, by what is printed; the first is what ships."""
    found = {
        "as it is": Arm(),
        "passes as wide as in fp32": Arm(wide=False),
        "freed memory given back": Arm(keeps=False),
        "memory in small pages": Arm(has_large_pages=False),
    }
    return found if beside is None else {**found, f"{beside}": Arm(folder=beside.resolve())}


@contextmanager
def slowed(arm: Arm) -> Iterator[None]:
    """Compute without what an arm has not."""
    import torch

    with ExitStack() as stack:
        if not arm.wide:
            width = PropertyMock(return_value=torch.float32.itemsize)
            stack.enter_context(patch("trial_runner.attachment.frozen_model.Device.product_bytes", new=width))
        if not arm.keeps:
            stack.enter_context(patch("trial_runner.runner.keep_freed"))
        yield


def new_pack(backbone: str | None = None, precision: str = "auto") -> Callable[[int], object]:
    """Trains a pack of proposals of the shipped example by some steps; on its backbone unless another is named."""
    from search_space.backbones import shape_of
    from search_space.space.space import SearchSpace
    from studies.search.candidates import new_trial, trial_request
    from studies.search.proposer import Proposer
    from studies.study_file import read_specification
    from studies.study_file.parser import study_file
    from trial_runner.backbones import config_of
    from trial_runner.runner import open_runner

    study = read_specification(study_file("docstrings"))
    source = study.backbone if backbone is None else replace(study.backbone, name=backbone)
    shape = shape_of(config_of(source.name))
    budget = study.budget_parameters(shape)
    space = SearchSpace(shape=shape, budget=budget, options=study.space_options)
    proposer = Proposer(space, sampler="random", seed=0)
    plan = replace(study.training_plan(), steps=ENDLESS, evaluate_at_steps=(ENDLESS,))
    runner = open_runner(backbone=source, task=study.task, precision=precision, threads=1)
    pack = runner.open_pack(PACK)
    for number in range(PACK):
        trial = new_trial(proposer.propose(), shape, number=number, head_parameters=0)
        pack.admit(trial_request(trial, attempt=1, plan=plan))
    return pack.advance


SHARES = {
    "frozen products": "",  # told by their shapes
    "attention and products of edits": "mm addmm bmm baddbmm _softmax _softmax_backward_data",
    "activations and norms": "gelu tanh relu silu sigmoid layer_norm",
    "casts and copies": "copy_ cat stack",
    "element-wise and indexing": "add mul sub div sum index gather scatter fill where norm",
}
REST = "Python and all else"


def share_of(operation: str, shapes: list[list[int]], frozen: set[tuple[int, ...]]) -> str:
    """Which of the shares an operation is of, told by its name and the shapes of what it takes."""
    name = operation.removeprefix("aten::")
    if name in ("mm", "addmm") and tuple(shapes[-3 if name == "addmm" else -1]) in frozen:
        return "frozen products"
    products, *others = list(SHARES)[1:]
    if name in SHARES[products].split():
        return products
    return next((share for share in others if any(word in name for word in SHARES[share].split())), REST)


def product_ms(shapes: list[list[int]], precision: str, calls: int = 20) -> float:
    """Processor time of a product by itself."""
    import torch

    one, other = (torch.randn(*shape, dtype=getattr(torch, precision)) for shape in shapes)
    torch.mm(one, other)
    began_at = time.process_time()
    for _ in range(calls):
        torch.mm(one, other)
    return 1000 * (time.process_time() - began_at) / calls


def shares(backbone: str | None, precision: str, steps: int = 8) -> tuple[dict[str, float], float, float]:
    """Shares of the time of a step; its milliseconds; and those of its frozen products by themselves."""
    from torch.profiler import ProfilerActivity, profile

    from trial_runner.backbones import config_of

    config = config_of(backbone or "embedded")
    wide, narrow = int(config["intermediate_size"]), int(config["hidden_size"])
    frozen = {(one, other) for one in (wide, narrow) for other in (wide, narrow)}
    advance = new_pack(backbone, precision)
    advance(WARM_STEPS)
    began_at = time.process_time()
    advance(steps)
    total = 1000 * (time.process_time() - began_at) / steps
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
        advance(steps)
    spent, alone = dict.fromkeys([*SHARES, REST], 0.0), 0.0
    for event in seen.key_averages(group_by_input_shape=True):
        share = share_of(event.key, event.input_shapes, frozen)
        spent[share] += event.self_cpu_time_total / 1000 / steps
        if share == "frozen products":
            two = [shape for shape in event.input_shapes if len(shape) == 2][:2]
            alone += event.count / steps * product_ms(two, "bfloat16" if precision == "bf16" else "float32")
    whole = sum(spent.values())
    return {name: ms / whole for name, ms in spent.items()}, total, alone


def work(name: str, beside: Path | None, turns: int) -> None:
    """Be an arm: train some steps whenever told to, and say what they took."""
    with slowed(arms(beside)[name]):
        advance = new_pack()
        advance(WARM_STEPS)
        say("ready", {})
        for _ in range(turns):
            wait()
            began_at = time.process_time()
            advance(STEPS)
            say("took", {"ms": 1000 * (time.process_time() - began_at) / STEPS})


def started(name: str, arm: Arm, beside: Path | None, turns: int) -> Process:
    """An arm that has warmed up."""
    from studies.backends.tune import LARGE_PAGES  # not in an arm, which may be of another checkout

    own = [str(arm.folder), str(Path(__file__).parent)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(own)}
    environment |= LARGE_PAGES if arm.has_large_pages else {}
    command = [__file__, "--work", name, "--turns", str(turns)]
    process = Process([*command, *([] if beside is None else ["--beside", str(beside)])], environment)
    process.hear("ready")
    return process


def measured(beside: Path | None, turns: int) -> dict[str, list[float]]:
    """Milliseconds of a step of each arm in each turn."""
    found: dict[str, list[float]] = {name: [] for name in arms(beside)}
    processes: dict[str, Process] = {}
    try:
        for name, arm in arms(beside).items():
            processes[name] = started(name, arm, beside, turns)
        for turn in range(turns):
            for name in list(processes) if turn % 2 == 0 else reversed(processes):
                processes[name].tell()
                found[name].append(float(processes[name].hear("took")["ms"]))
    finally:
        for process in processes.values():
            process.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout, whose steps are measured too")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"of every arm (default {TURNS})")
    parser.add_argument("--shares", action="store_true", help="of what a step's time goes to, instead")
    parser.add_argument("--backbone", metavar="FOLDER", help="of --shares (default: the embedded one)")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work, arguments.beside, arguments.turns)
        return
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}; a step of {PACK} trials of the shipped example")
    if arguments.shares:
        for precision in ("fp32", "bf16"):
            found, total, alone = shares(arguments.backbone, precision)
            print(f"{precision}: {total:.0f} ms, {total / alone:.1f} times its frozen products by themselves")
            print("".join(f"  {name:<34}{share:6.1%}\n" for name, share in found.items()), end="")
        return
    found = measured(arguments.beside, arguments.turns)
    first = next(iter(found.values()))
    for name, each in found.items():
        ratio = statistics.median(one / other for one, other in zip(each, first, strict=True))
        print(f"{name:<28}{statistics.median(each):8.1f} ms  {ratio:6.3f} of the first")


if __name__ == "__main__":
    main()
