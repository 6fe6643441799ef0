"""The search of this library against other searches, on a real backbone, by test scores.

    python benchmarks/rivals.py --backbone FOLDER --data FOLDER --minutes 60       continue for an hour, then print.
    python benchmarks/rivals.py --backbone FOLDER --data FOLDER                    print what there is.
    python benchmarks/rivals.py --backbone FOLDER --data FOLDER --minutes 60 --tasks sick --budgets 0.1% --seeds 0

Arms: a LoRA sweep and a sweep of the published methods with TPE, the space of AutoPEFT with a Gaussian process, uniform
draws from our space, and the search as shipped. All have the same number of trials, steps and validation examples. The
recommended configuration of each arm is trained again with fresh seeds, which are the same for all arms. Its scores are
those on the test split, which no search uses. Arms share trials: equal ones are trained once. After an interruption the
same command continues.
"""

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean, median, stdev

os.environ.setdefault("OMP_NUM_THREADS", "1")

from rival_arms.own import factored, lora_space, uniform
from rival_arms.setting import TASKS, ArmTrial, Cell, SearchResult
from rival_arms.sweeps import autopeft, lora_sweep, published_sweep
from rival_arms.training import OutOfTime
from search_arms.intervals import with_interval

from studies.seeds import hashed_seed

LORA, FACTORED = "LoRA sweep", "factored"
ARMS: dict[str, Callable[[Cell], SearchResult]] = {
    LORA: lora_sweep,
    FACTORED: factored,
    "space: lora": lora_space,
    "uniform": uniform,
    "published": published_sweep,
    "AutoPEFT": autopeft,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutcome:
    """Search of an arm in a cell, and the test of its recommended configuration.

    Attributes:
        test_points: Scores on the test split in points, one for each fresh seed.
    """

    search: SearchResult
    test_points: Sequence[float]


Outcomes = Mapping[str, Mapping[str, ArmOutcome]]  # by name of the cell and of the arm


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--backbone", required=True, help="folder or name of the backbone")
    add("--data", type=Path, help="folder with a folder of each task; none for an embedded task")
    add("--minutes", type=float, default=0.0, metavar="N", help="minutes of training (default 0: print alone)")
    with_folder = [name for name, keys in TASKS.items() if "name" not in keys]
    add("--tasks", nargs="+", choices=tuple(TASKS), default=with_folder, help="default: those with a folder")
    add("--budgets", nargs="+", default=["0.02%", "0.1%", "0.5%"])
    add("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N", help="seeds of the studies (default 0 1 2)")
    add("--arms", nargs="+", choices=tuple(ARMS), default=tuple(ARMS))
    add("--trials", type=int, default=40, metavar="N", help="trials of an arm (default 40)")
    add("--steps", type=int, default=200, metavar="N", help="steps of a trial (default 200)")
    add("--batch", type=int, default=16, metavar="N", help="examples of a step (default 16)")
    add("--validation", type=int, default=1000, metavar="N", help="validation examples (default 1000)")
    add("--test", type=int, metavar="N", help="test examples, evenly spaced (default: all)")
    add("--confirm-seeds", type=int, default=8, metavar="N", help="fresh seeds, at least 2 (default 8)")
    add("--folder", type=Path, default=Path(__file__).parent / "rivals", help="folder of trials and databases")
    arguments = parser.parse_args(words)
    if arguments.data is None and set(arguments.tasks) & set(with_folder):
        parser.error("--data must be given for a task with a folder")
    return arguments


def cells_of(arguments: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells: all tasks and budgets of one seed before those of the next seed."""
    for seed in arguments.seeds:
        for budget in arguments.budgets:
            for task in arguments.tasks:
                yield Cell(
                    task=task,
                    budget=budget,
                    seed=seed,
                    backbone=arguments.backbone,
                    data=Path() if arguments.data is None else _data(arguments, task),
                    trials=arguments.trials,
                    steps=arguments.steps,
                    batch=arguments.batch,
                    validation=arguments.validation,
                    folder=arguments.folder,
                    until=time.monotonic() + 60 * arguments.minutes,
                )


def _data(arguments: argparse.Namespace, task: str) -> Path:
    """Return the folder of a task's splits, with the test split shortened if `--test` is given."""
    source: Path = arguments.data / task
    if arguments.test is None:
        return source
    shortened: Path = arguments.folder / "data" / str(arguments.test) / task
    if not shortened.exists():
        shortened.mkdir(parents=True)
        for split in ("train", "validation"):
            shutil.copy(source / f"{split}.jsonl", shortened)
        lines = (source / "test.jsonl").read_text().splitlines(keepends=True)
        stride = max(1, len(lines) // arguments.test)  # rows may be sorted by label
        (shortened / "test.jsonl").write_text("".join(lines[::stride][: arguments.test]))
    return shortened


def run(cell: Cell, arms: Sequence[str], seeds: int) -> Iterator[tuple[str, ArmOutcome]]:
    """Train the arms of a cell until the time is up; yield those that are complete."""
    for arm in arms:
        try:
            began = time.monotonic()
            search = ARMS[arm](cell)
            test_points = [_test_points(cell, search.recommended, seed) for seed in range(seeds)]
        except OutOfTime:
            continue
        if (seconds := time.monotonic() - began) > 1:
            print(f"{cell.name} {arm}: {fmean(test_points):.1f} in {seconds:.0f} s", file=sys.stderr, flush=True)
        yield arm, ArmOutcome(search=search, test_points=test_points)


def _test_points(cell: Cell, trial: ArmTrial, seed: int) -> float:
    steps = trial.request.plan.steps
    plan = replace(trial.request.plan, measured_split="test", evaluate_at_steps=(steps,), rung_examples=None)
    fresh = hashed_seed("confirm", cell.task, seed, bits=31)
    *_, last = cell.runner.readings(replace(trial.request, trial=0, plan=plan, seed=fresh))
    return 100 * last.score


def lines_of(cells: Sequence[Cell], outcomes: Outcomes) -> Iterator[str]:
    """Yield a row for each arm of each cell, then the comparisons."""
    columns = "validation | expected | test | deviation | worst | parameters | finished | steps | recommended"
    yield f"| cell | arm | {columns} |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for cell in cells:
        for arm, outcome in outcomes.get(cell.name, {}).items():
            yield _row(cell, arm, outcome)
    yield ""
    yield from _arm_lines(cells, outcomes)
    yield ""
    yield from _speed_lines(outcomes)
    yield from _calibration_lines(outcomes)


def _arm_lines(cells: Sequence[Cell], outcomes: Outcomes) -> Iterator[str]:
    """Yield a row for each budget and arm, over the cells where the search as shipped is complete as well."""
    yield (
        "| budget | arm | cells | test | deviation of seeds | worst seed | parameters | steps "
        "| factored less it, in points | better | worse |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for budget, arm in product(dict.fromkeys(cell.budget for cell in cells), ARMS):
        common = [
            cell for cell in cells if cell.budget == budget and {arm, FACTORED} <= outcomes.get(cell.name, {}).keys()
        ]
        if not common:
            continue
        of_arm = [outcomes[cell.name][arm] for cell in common]
        tests = [each.test_points for each in of_arm]
        means = [f"{fmean(map(measure, tests)):.1f}" for measure in (fmean, stdev, min)]
        parameters = fmean(one.search.recommended.stored(cell.shape) for one, cell in zip(of_arm, common, strict=True))
        steps = fmean(sum(trial.steps for trial in each.search.trials) for each in of_arm)
        ours = [outcomes[cell.name][FACTORED].test_points for cell in common]
        gaps = [fmean(one) - fmean(other) for one, other in zip(ours, tests, strict=True)]
        better, worse = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
        compared = "||" if arm == FACTORED else f"{with_interval(gaps)} | {better} | {worse}"
        columns = [budget, arm, len(common), *means, f"{parameters:,.0f}", f"{steps:,.0f}", compared]
        yield f"| {' | '.join(map(str, columns))} |"


def _row(cell: Cell, arm: str, outcome: ArmOutcome) -> str:
    best, search = outcome.search.recommended, outcome.search
    expected = "" if search.expected is None else "{:.1f} ± {:.1f}".format(*(100 * each for each in search.expected))
    finished = f"{sum(each.score is not None for each in search.trials)}/{len(search.trials)}"
    score = f"{100 * best.score:.1f}" if best.score is not None else ""
    steps, description = sum(each.steps for each in search.trials), best.description(cell.shape)
    test = f"{fmean(outcome.test_points):.1f} | {stdev(outcome.test_points):.1f} | {min(outcome.test_points):.1f}"
    counts = f"{best.stored(cell.shape):,} | {finished} | {steps:,}"
    return f"| {cell.name} | {arm} | {score} | {expected} | {test} | {counts} | {description} |"


def _speed_lines(outcomes: Outcomes) -> Iterator[str]:
    """Yield the median trial at which each arm reached the LoRA sweep's best validation score; infinite if never."""
    for arm in ARMS:
        cells = [arms for arms in outcomes.values() if LORA in arms and arm in arms]
        trials = [arms[arm].search.trials_to(arms[LORA].search.best_score) for arms in cells]
        if trials:
            middle = median(math.inf if number is None else number for number in trials)
            never = f"; never in {trials.count(None)} of {len(trials)}" if None in trials else ""
            yield f"- {arm} reaches the LoRA sweep's best validation score at trial {middle:.0f} in the median{never}."


def _calibration_lines(outcomes: Outcomes) -> Iterator[str]:
    pairs = [(one.search.expected, fmean(one.test_points)) for arms in outcomes.values() for one in arms.values()]
    is_inside = [abs(100 * mean[0] - test) <= 100 * mean[1] for mean, test in pairs if mean is not None]
    if is_inside:
        yield f"- {sum(is_inside)} of {len(is_inside)} test means lie in the 95% interval of the expected score."


def main() -> None:
    arguments = arguments_of()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    cells = list(cells_of(arguments))
    outcomes = {cell.name: dict(run(cell, arguments.arms, arguments.confirm_seeds)) for cell in cells}
    print("\n".join(lines_of(cells, outcomes)))


if __name__ == "__main__":
    main()
