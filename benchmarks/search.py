"""Recommendations of samplers on planted truths, by the number of trials.

    python benchmarks/search.py                              three samplers, 50 tasks, 100 trials; hours
    python benchmarks/search.py --seeds 10 --samplers random,factored
    python benchmarks/search.py --results FILE               continue the results of a file
    python benchmarks/search.py --coverage --trials 40       coverage of the 95% intervals of estimates; a minute

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
from statistics import fmean, median, stdev

from search_arms.coverage import coverage_of
from search_arms.simulation import GAIN, Recommendation, SimulatedStudy, simulate

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.search.samplers import SAMPLERS

_CHECKPOINTS = (25, 50, 100, 200)
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
    add("--coverage", action="store_true", help="measure the coverage of estimates only, without samplers")
    return parser.parse_args(words)


def coverage_lines(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each spread of the scores of a configuration over seeds of its training."""
    yield f"{'spread':<10}{'coverage':>17}{'of the best':>13}{'deviation':>11}{'error':>8}"
    space = whole_space()
    for spread in (0.0, 1.0, 3.0):
        options = {"trials": arguments.trials, "noise": arguments.noise, "spread": spread}
        found = [coverage_of(space, seed, **options) for seed in range(arguments.seeds)]
        rest = f"{fmean(one.deviation for one in found):>11.2f}{fmean(one.error for one in found):>8.2f}"
        held = mean([one.of_all for one in found])
        yield f"{spread:<10}{held:>17}{fmean(one.of_best for one in found):>13.2f}{rest}"


def _samplers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in SAMPLERS]:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(SAMPLERS)}; got {', '.join(unknown)}.")
    return names


def whole_space() -> SearchSpace:
    """Return the whole space at 0.5% of RoBERTa-base."""
    shape = shape_of(json.loads(_BACKBONE.read_text()))
    return SearchSpace(shape=shape, budget=int(_BUDGET * shape.parameters))


def studies(arguments: argparse.Namespace) -> Studies:
    """Run the studies that the file of results lacks and return all of them."""
    options = {"trials": arguments.trials, "noise": arguments.noise}
    done: dict[tuple[str, int], SimulatedStudy] = {}
    file: Path | None = arguments.results
    for line in file.read_text().splitlines() if file is not None and file.is_file() else ():
        entry = json.loads(line)
        if entry.pop("options") == options:
            entry["recommended"] = [Recommendation(**fields) for fields in entry["recommended"]]
            done[entry["sampler"], entry["seed"]] = SimulatedStudy(**entry)
    space, checkpoints = whole_space(), {*_CHECKPOINTS, arguments.trials}
    for seed in range(arguments.seeds):
        for sampler in arguments.samplers:
            if (sampler, seed) in done:
                continue
            study = done[sampler, seed] = simulate(sampler, space, seed, checkpoints=checkpoints, **options)
            print(f"seed {seed}: {sampler}", file=sys.stderr, flush=True)
            if file is not None:
                with file.open("a") as stream:
                    stream.write(json.dumps({"options": options, **asdict(study)}) + "\n")
    return {name: [done[name, seed] for seed in range(arguments.seeds)] for name in arguments.samplers}


def mean(values: Sequence[float]) -> str:
    """Format a mean with its 95% interval."""
    half = 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):+.2f} ± {half:.2f}"


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
                f"{sampler:<10}{checkpoint.trials:>7}{fmean(winner.cost for winner in winners):>7.1f}{mean(gains):>21}"
                f"{'' if runs is first else mean(pairs):>17}{fmean(gain > GAIN for gain in gains):>7.2f}"
                f"{mean([winner.estimate - winner.truth for winner in winners]):>17}{found_at:>10.0f}"
            )


def main() -> None:
    arguments = arguments_of()
    print(f"{os.cpu_count()} cores, load {' '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    for line in coverage_lines(arguments) if arguments.coverage else table_lines(studies(arguments)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
