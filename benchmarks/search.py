"""Recommendations of samplers on planted truths, by the number of trials.

    python benchmarks/search.py                              three samplers, 50 tasks, 100 trials; hours
    python benchmarks/search.py --seeds 10 --samplers random,factored
    python benchmarks/search.py --results FILE               continue the results of a file
    python benchmarks/search.py --coverage --trials 40 --samplers factored    what estimates and leads hold; an hour

Proposer, rungs and estimates are those of the product, on the whole space of RoBERTa-base's shape at 0.5%. Only the
training is simulated (`search_arms.truth`, `search_arms.readings`). All samplers have the same tasks, and equal trials
have equal readings, so each sampler is compared with the first one by paired seeds. `rivals.py` uses real backbones.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

from search_arms.intervals import with_interval
from search_arms.simulation import GAIN, PlantedTask, Recommendation, SearchPlan, SimulatedStudy, simulate

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.search.samplers import SAMPLERS

_CHECKPOINTS = (25, 50, 100, 200)
_COVERED = (12, 20, 40)
_BACKBONE = Path(__file__).parents[1] / "tests" / "data" / "backbones" / "roberta_base" / "config.json"
_BUDGET = 0.005

Studies = Mapping[str, Sequence[SimulatedStudy]]  # by sampler, in the order of the seeds


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seeds", type=int, default=50, help="tasks, each with a study of every sampler (default 50)")
    add("--trials", type=int, default=100, help="trials of a study (default 100)")
    add(
        "--samplers",
        type=_samplers,
        default=("random", "tpe", "factored"),
        metavar="NAME,…",
        help="samplers (default random,tpe,factored)",
    )
    add("--noise", type=float, default=2.2, help="standard deviation of an accuracy near 0.5, in points (default 2.2)")
    add("--results", type=Path, metavar="FILE", help="JSON lines, one per study; stored studies are not run again")
    add("--coverage", action="store_true", help="measure what the intervals of estimates hold")
    return parser.parse_args(words)


def coverage_lines(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each sampler, number of trials, and spread of the scores of a configuration over seeds."""
    yield (
        f"{'sampler':<10}{'truth':<9}{'spread':>7}{'trials':>7}{'held, all':>15}{'the best':>10}"
        f"{'far below':>12}{'optimism':>15}{f'lead > {GAIN}':>12}{'found':>7}{'estimated spread':>18}"
    )
    for spread, is_flat in ((0.0, False), (1.0, False), (3.0, False), (1.0, True), (3.0, True)):
        for sampler, runs in studies(arguments, _COVERED, spread=spread, is_flat=is_flat).items():
            for index, checkpoint in enumerate(runs[0].recommended):
                winners = [run.recommended[index] for run in runs]
                of_all = with_interval([winner.of_all for winner in winners]).lstrip("+")
                optimism = with_interval([winner.estimate - winner.truth for winner in winners])
                far = f"{sum(winner.far_held for winner in winners)} of {sum(winner.far for winner in winners)}"
                promised, found = ([winner.lead > GAIN for winner in winners], [winner.found for winner in winners])
                yield (
                    f"{sampler:<10}{'flat' if is_flat else 'planted':<9}{spread:>7}{checkpoint.trials:>7}{of_all:>15}"
                    f"{fmean(winner.held for winner in winners):>10.2f}{far:>12}{optimism:>15}"
                    f"{fmean(promised):>12.2f}{fmean(found):>7.2f}"
                    f"{with_interval([winner.seed_deviation for winner in winners]).lstrip('+'):>18}"
                )


def _samplers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in SAMPLERS]:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(SAMPLERS)}; got {', '.join(unknown)}.")
    return names


def whole_space() -> SearchSpace:
    """Return the whole space at 0.5% of RoBERTa-base."""
    shape = shape_of(json.loads(_BACKBONE.read_text()))
    return SearchSpace(shape=shape, budget=int(_BUDGET * shape.parameters))


def studies(arguments: argparse.Namespace, checkpoints: Sequence[int], **task: float) -> Studies:
    """Run the studies that the file of results lacks and return all of them."""
    fields: dict[str, Any] = {"noise": arguments.noise, **task}
    options = {"trials": arguments.trials, **fields}
    done: dict[tuple[str, int], SimulatedStudy] = {}
    file: Path | None = arguments.results
    for line in file.read_text().splitlines() if file is not None and file.is_file() else ():
        entry = json.loads(line)
        if entry.pop("options") == options:
            entry["recommended"] = [Recommendation(**fields) for fields in entry["recommended"]]
            done[entry["sampler"], entry["seed"]] = SimulatedStudy(**entry)
    space, after = whole_space(), sorted({one for one in (*checkpoints, arguments.trials) if one <= arguments.trials})
    for seed in range(arguments.seeds):
        for sampler in arguments.samplers:
            if (sampler, seed) in done:
                continue
            planted = PlantedTask(space=space, seed=seed, **fields)
            study = done[sampler, seed] = simulate(SearchPlan(sampler=sampler, space=space), planted, checkpoints=after)
            print(f"seed {seed}: {sampler}", file=sys.stderr, flush=True)
            if file is not None:
                with file.open("a") as stream:
                    stream.write(json.dumps({"options": options, **asdict(study)}) + "\n")
    return {name: [done[name, seed] for seed in range(arguments.seeds)] for name in arguments.samplers}


def table_lines(by_sampler: Studies) -> Iterator[str]:
    """Yield a line for each sampler and checkpoint."""
    first = next(iter(by_sampler.values()))
    yield (
        f"{'sampler':<10}{'trials':>7}{'cost':>7}{'gain over published':>21}{'less the first':>17}"
        f"{f'> {GAIN}':>7}{'optimism':>17}{'found at':>10}"
    )
    for sampler, runs in by_sampler.items():
        found_at = median(math.inf if run.found_trial is None else run.found_trial for run in runs)
        for index, checkpoint in enumerate(runs[0].recommended):
            winners = [run.recommended[index] for run in runs]
            gains = [winner.truth - run.tried for winner, run in zip(winners, runs, strict=True)]
            pairs = [winner.truth - run.recommended[index].truth for winner, run in zip(winners, first, strict=True)]
            yield (
                f"{sampler:<10}{checkpoint.trials:>7}{fmean(winner.cost for winner in winners):>7.1f}"
                f"{with_interval(gains):>21}"
                f"{'' if runs is first else with_interval(pairs):>17}{fmean(gain > GAIN for gain in gains):>7.2f}"
                f"{with_interval([winner.estimate - winner.truth for winner in winners]):>17}{found_at:>10.0f}"
            )


def main() -> None:
    arguments = arguments_of()
    print(f"{os.cpu_count()} cores, load {' '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    for line in coverage_lines(arguments) if arguments.coverage else table_lines(studies(arguments, _CHECKPOINTS)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
