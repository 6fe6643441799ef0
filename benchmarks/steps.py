"""Time of a training step on a CPU, with and without the optimizations.

    python benchmarks/steps.py                     steps of the shipped example, about two minutes.
    python benchmarks/steps.py --beside ../older   and steps of another checkout.
    python benchmarks/steps.py --shares            shares of the time of a step, in fp32 and in bf16.
    python benchmarks/steps.py --shares --backbone FOLDER

Each arm is a process with one thread that trains the same pack of four searched trials. Arms take turns of a few steps,
every second turn in reverse order, since the speed of a machine changes within minutes. Milliseconds are processor
time. Printed are the median over the turns of an arm and the median ratio to the first arm in the same turn. Shares
come from PyTorch's profiler; the products of frozen weights are timed again alone.
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
from pack_arms.wire import send, wait_for_parent

ROOT = Path(__file__).parents[1]
TURNS, STEPS, WARM_STEPS, PACK = 12, 10, 10, 4
ENDLESS = 1_000_000


@dataclass(frozen=True)
class Arm:
    """Way to compute the same steps.

    Attributes:
        is_wide: Whether the width of a pass follows from the precision of its products, instead of fp32.
        keeps_freed: Whether freed memory is kept.
        has_large_pages: Whether memory comes in large pages.
        folder: Checkout with the code.
    """

    is_wide: bool = True
    keeps_freed: bool = True
    has_large_pages: bool = True
    folder: Path = ROOT


def arms(other_tree: Path | None) -> dict[str, Arm]:
    """Return the arms by their printed names; the first one is the code as shipped."""
    own = {
        "as shipped": Arm(),
        "passes as wide as in fp32": Arm(is_wide=False),
        "freed memory returned": Arm(keeps_freed=False),
        "memory in small pages": Arm(has_large_pages=False),
    }
    return own if other_tree is None else {**own, f"{other_tree}": Arm(folder=other_tree.resolve())}


@contextmanager
def slowed(arm: Arm) -> Iterator[None]:
    """Switch off the optimizations that an arm lacks."""
    import torch

    with ExitStack() as stack:
        if not arm.is_wide:
            width = PropertyMock(return_value=torch.float32.itemsize)
            stack.enter_context(patch("trial_runner.attachment.frozen_model.Device.product_bytes", new=width))
        if not arm.keeps_freed:
            stack.enter_context(patch("trial_runner.runner.keep_freed"))
        yield


def new_pack(backbone: str | None = None, precision: str = "auto") -> Callable[[int], object]:
    """Build a pack of proposals of the shipped example; return the function that trains it by some steps."""
    from search_space.backbones import shape_of
    from search_space.space.space import SearchSpace
    from studies.history.history import StudyHistory
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
    history = StudyHistory()
    for number in range(PACK):
        trial = new_trial(proposer.propose(history), shape, number=number, head_parameters=0)
        history = history.added([trial])
        pack.admit(trial_request(trial, attempt=1, plan=plan))
    return pack.advance


SHARES = {
    "frozen products": "",  # recognized by their shapes
    "attention and products of edits": "mm addmm bmm baddbmm _softmax _softmax_backward_data",
    "activations and norms": "gelu tanh relu silu sigmoid layer_norm",
    "casts and copies": "copy_ cat stack",
    "element-wise and indexing": "add mul sub div sum index gather scatter fill where norm",
}
REST = "Python and others"


def share_of(operation: str, shapes: list[list[int]], frozen: set[tuple[int, ...]]) -> str:
    """Return the share to which an operation belongs, from its name and the shapes of its inputs."""
    name = operation.removeprefix("aten::")
    if name in ("mm", "addmm") and tuple(shapes[-3 if name == "addmm" else -1]) in frozen:
        return "frozen products"
    products, *others = list(SHARES)[1:]
    if name in SHARES[products].split():
        return products
    return next((share for share in others if any(word in name for word in SHARES[share].split())), REST)


def product_ms(shapes: list[list[int]], precision: str, calls: int = 20) -> float:
    """Measure the processor time of a product alone."""
    import torch

    left, right = (torch.randn(*shape, dtype=getattr(torch, precision)) for shape in shapes)
    torch.mm(left, right)
    began_at = time.process_time()
    for _ in range(calls):
        torch.mm(left, right)
    return 1000 * (time.process_time() - began_at) / calls


def shares(backbone: str | None, precision: str, steps: int = 8) -> tuple[dict[str, float], float, float]:
    """Return the shares of the time of a step, its milliseconds, and those of its frozen products alone."""
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
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        advance(steps)
    spent, alone = dict.fromkeys([*SHARES, REST], 0.0), 0.0
    for event in profiled.key_averages(group_by_input_shape=True):
        share = share_of(event.key, event.input_shapes, frozen)
        spent[share] += event.self_cpu_time_total / 1000 / steps
        if share == "frozen products":
            two = [shape for shape in event.input_shapes if len(shape) == 2][:2]
            alone += event.count / steps * product_ms(two, "bfloat16" if precision == "bf16" else "float32")
    whole = sum(spent.values())
    return {name: ms / whole for name, ms in spent.items()}, total, alone


def work(name: str, other_tree: Path | None, turns: int) -> None:
    """Run an arm: train some steps at each message of the parent and report their time."""
    with slowed(arms(other_tree)[name]):
        advance = new_pack()
        advance(WARM_STEPS)
        send("ready", {})
        for _ in range(turns):
            wait_for_parent()
            began_at = time.process_time()
            advance(STEPS)
            send("took", {"ms": 1000 * (time.process_time() - began_at) / STEPS})


def start(name: str, arm: Arm, other_tree: Path | None, turns: int) -> Process:
    """Start an arm and wait until it has warmed up."""
    from studies.backends.tune import LARGE_PAGES  # not in an arm, which may be of another checkout

    folders = [str(arm.folder), str(Path(__file__).parent)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(folders)}
    environment |= LARGE_PAGES if arm.has_large_pages else {}
    command = [__file__, "--work", name, "--turns", str(turns)]
    process = Process([*command, *([] if other_tree is None else ["--beside", str(other_tree)])], environment)
    process.receive("ready")
    return process


def measure(other_tree: Path | None, turns: int) -> dict[str, list[float]]:
    """Measure the milliseconds of a step of each arm in each turn."""
    milliseconds: dict[str, list[float]] = {name: [] for name in arms(other_tree)}
    processes: dict[str, Process] = {}
    try:
        for name, arm in arms(other_tree).items():
            processes[name] = start(name, arm, other_tree, turns)
        for turn in range(turns):
            for name in list(processes) if turn % 2 == 0 else reversed(processes):
                processes[name].start_turn()
                milliseconds[name].append(float(processes[name].receive("took")["ms"]))
    finally:
        for process in processes.values():
            process.stop()
    return milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout to measure as well")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"turns of every arm (default {TURNS})")
    parser.add_argument("--shares", action="store_true", help="print the shares of the time of a step instead")
    parser.add_argument("--backbone", metavar="FOLDER", help="backbone of --shares (default: the embedded one)")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work(arguments.work, arguments.beside, arguments.turns)
        return
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"{os.cpu_count()} cores, load {load}; a step of {PACK} trials of the shipped example")
    if arguments.shares:
        for precision in ("fp32", "bf16"):
            by_name, total, alone = shares(arguments.backbone, precision)
            print(f"{precision}: {total:.0f} ms, {total / alone:.1f} times its frozen products alone")
            print("".join(f"  {name:<34}{share:6.1%}\n" for name, share in by_name.items()), end="")
        return
    milliseconds = measure(arguments.beside, arguments.turns)
    first = next(iter(milliseconds.values()))
    for name, own in milliseconds.items():
        ratio = statistics.median(each / reference for each, reference in zip(own, first, strict=True))
        print(f"{name:<28}{statistics.median(own):8.1f} ms  {ratio:6.3f} of the first")


if __name__ == "__main__":
    main()
