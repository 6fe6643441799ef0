"""Rivals: what a search recommends beside what people do today, on a real backbone, on test data.

    python benchmarks/rivals.py --backbone FOLDER --data FOLDER --minutes 60       continue for an hour, then print
    python benchmarks/rivals.py --backbone FOLDER --data FOLDER                    print what there is
    python benchmarks/rivals.py --backbone FOLDER --data FOLDER --minutes 60 --tasks sick --budgets 0.1% --seeds 0

Arms: a LoRA sweep and a sweep of the published methods with TPE, the space of AutoPEFT with a Gaussian process, our
space uniformly, and the search as shipped. All have the same trials, steps and validation examples. The configuration
that each recommends is trained again with fresh seeds, the same for all arms, and measured on the test split, which no
search sees. A trial is trained once, whichever arm asks for it; whatever ends the process, the same command continues.
"""

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median, stdev

os.environ.setdefault("OMP_NUM_THREADS", "1")

from rival_arms.own import factored, uniform
from rival_arms.setting import TASKS, Cell, Search, Tried
from rival_arms.sweeps import autopeft, lora_sweep, published_sweep
from rival_arms.training import OutOfTime
from scipy.stats import t as student

from studies.seeds import hashed_seed

LORA, FACTORED = "LoRA sweep", "factored"
ARMS: dict[str, Callable[[Cell], Search]] = {
    LORA: lora_sweep,
    FACTORED: factored,
    "uniform": uniform,
    "published": published_sweep,
    "AutoPEFT": autopeft,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an arm recommended in a cell.

    Attributes:
        test: Scores on the test split in points, one for each fresh seed.
    """

    search: Search
    test: Sequence[float]


Outcomes = Mapping[str, Mapping[str, Outcome]]  # by name of the cell and of the arm


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--backbone", required=True, help="folder or name of the backbone")
    add("--data", type=Path, required=True, help="holds a folder of every task")
    add("--minutes", type=float, default=0.0, metavar="N", help="train for so long (default 0: print)")
    add("--tasks", nargs="+", choices=tuple(TASKS), default=tuple(TASKS))
    add("--budgets", nargs="+", default=["0.02%", "0.1%", "0.5%"])
    add("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N", help="of the studies (default 0 1 2)")
    add("--arms", nargs="+", choices=tuple(ARMS), default=tuple(ARMS))
    add("--trials", type=int, default=40, metavar="N", help="of an arm (default 40)")
    add("--steps", type=int, default=200, metavar="N", help="of a trial (default 200)")
    add("--batch", type=int, default=16, metavar="N", help="examples of a step (default 16)")
    add("--validation", type=int, default=1000, metavar="N", help="validation examples (default 1000)")
    add("--test", type=int, metavar="N", help="test examples, evenly spaced (default all)")
    add("--confirm-seeds", type=int, default=8, metavar="N", help="fresh seeds, at least 2 (default 8)")
    add("--folder", type=Path, default=Path(__file__).parent / "rivals", help="of trials and databases")
    return parser.parse_args(words)


def cells_of(arguments: argparse.Namespace) -> Iterator[Cell]:
    """All tasks and budgets with one seed before the next seed."""
    for seed in arguments.seeds:
        for budget in arguments.budgets:
            for task in arguments.tasks:
                yield Cell(
                    task=task,
                    budget=budget,
                    seed=seed,
                    backbone=arguments.backbone,
                    data=_data(arguments, task),
                    trials=arguments.trials,
                    steps=arguments.steps,
                    batch=arguments.batch,
                    validation=arguments.validation,
                    folder=arguments.folder,
                    until=time.monotonic() + 60 * arguments.minutes,
                )


def _data(arguments: argparse.Namespace, task: str) -> Path:
    """The folder of a task's splits, the test split cut where that is wanted."""
    whole: Path = arguments.data / task
    if arguments.test is None:
        return whole
    cut: Path = arguments.folder / "data" / str(arguments.test) / task
    if not cut.exists():
        cut.mkdir(parents=True)
        for split in ("train", "validation"):
            shutil.copy(whole / f"{split}.jsonl", cut)
        lines = (whole / "test.jsonl").read_text().splitlines(keepends=True)
        every = max(1, len(lines) // arguments.test)  # rows may be sorted by label
        (cut / "test.jsonl").write_text("".join(lines[::every][: arguments.test]))
    return cut


def run(cell: Cell, arms: Sequence[str], seeds: int) -> Iterator[tuple[str, Outcome]]:
    """The arms of a cell that have ended, with what is trained of them until the time is up."""
    for arm in arms:
        try:
            began = time.monotonic()
            search = ARMS[arm](cell)
            test = [_tested(cell, search.recommended, seed) for seed in range(seeds)]
        except OutOfTime:
            continue
        if (seconds := time.monotonic() - began) > 1:
            print(f"{cell.name} {arm}: {fmean(test):.1f} in {seconds:.0f} s", file=sys.stderr, flush=True)
        yield arm, Outcome(search=search, test=test)


def _tested(cell: Cell, one: Tried, seed: int) -> float:
    plan = replace(
        one.request.plan, measured_split="test", evaluate_at_steps=(one.request.plan.steps,), rung_examples=None
    )
    fresh = hashed_seed("confirm", cell.task, seed, bits=31)
    *_, last = cell.runner.readings(replace(one.request, trial=0, plan=plan, seed=fresh))
    return 100 * last.score


def interval(values: Sequence[float]) -> str:
    """A mean with its 95% interval by Student's t."""
    if len(values) < 2:
        return f"{fmean(values):+.2f}"
    return f"{fmean(values):+.2f} ± {student.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values)):.2f}"


def lines_of(cells: Sequence[Cell], found: Outcomes) -> Iterator[str]:
    """Every arm of every cell, then the comparisons."""
    yield "| cell | arm | validation | expected | test | deviation | parameters | finished | steps | recommended |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|---|"
    for cell in cells:
        for arm, one in found.get(cell.name, {}).items():
            yield _row(cell, arm, one)
    by_cell = [arms for arms in found.values() if FACTORED in arms]
    yield from ("", "Factored minus the other arm on test, in points:", "")
    yield "| arm | cells | mean difference | factored better | worse |"
    yield "|---|--:|--:|--:|--:|"
    for arm in ARMS:
        gaps = [_gap(arms[FACTORED], arms[arm]) for arms in by_cell if arm in arms and arm != FACTORED]
        if gaps:
            better, worse = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
            yield f"| {arm} | {len(gaps)} | {interval(gaps)} | {better} | {worse} |"
    yield from _reached(found)
    yield from _honest(found)


def _gap(one: Outcome, other: Outcome) -> float:
    return fmean(one.test) - fmean(other.test)


def _row(cell: Cell, arm: str, one: Outcome) -> str:
    best, search = one.search.recommended, one.search
    expected = "" if search.expected is None else "{:.1f} ± {:.1f}".format(*(100 * each for each in search.expected))
    finished = f"{sum(each.score is not None for each in search.trials)}/{len(search.trials)}"
    score = f"{100 * best.score:.1f}" if best.score is not None else ""
    steps, what = sum(each.steps for each in search.trials), best.words(cell.shape)
    measured = f"{score} | {expected} | {fmean(one.test):.1f} | {stdev(one.test):.1f}"
    return f"| {cell.name} | {arm} | {measured} | {best.stored(cell.shape):,} | {finished} | {steps:,} | {what} |"


def _reached(found: Outcomes) -> Iterator[str]:
    """When each arm had the LoRA sweep's best validation score; a cell where it never had counts as after all."""
    for arm in ARMS:
        cells = [arms for arms in found.values() if LORA in arms and arm in arms]
        when = [arms[arm].search.reached(arms[LORA].search.best_score) for arms in cells]
        if when:
            middle = median(math.inf if one is None else one for one in when)
            never = f"; never in {when.count(None)} of {len(when)}" if None in when else ""
            yield f"- {arm} has the LoRA sweep's best validation score at trial {middle:.0f} in the median{never}."


def _honest(found: Outcomes) -> Iterator[str]:
    both = [(one.search.expected, fmean(one.test)) for arms in found.values() for one in arms.values()]
    inside = [abs(100 * known[0] - test) <= 100 * known[1] for known, test in both if known is not None]
    if inside:
        yield f"- {sum(inside)} of {len(inside)} test means lie in the 95% interval of what the study says to expect."


def main() -> None:
    arguments = arguments_of()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    cells = list(cells_of(arguments))
    found = {cell.name: dict(run(cell, arguments.arms, arguments.confirm_seeds)) for cell in cells}
    print("\n".join(lines_of(cells, found)))


if __name__ == "__main__":
    main()
