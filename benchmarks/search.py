"""The search on planted truths: what samplers recommend after so many trials.

    python benchmarks/search.py                              three samplers, 50 tasks, 100 trials; hours
    python benchmarks/search.py --seeds 10 --samplers random,factored
    python benchmarks/search.py --results FILE               continues what the file holds, and adds to it

Proposer, rungs and estimates are the product's, on the whole space of a backbone of RoBERTa-base's shape at half a
percent; only training is made up (`search_arms.truth`, `search_arms.readings`). All samplers have the same tasks, and a
trial reads the same for all of them, so they are compared seed by seed with the first one. What real backbones say is
in `rivals.py`.
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

from search_arms.simulation import GAIN, Recommended, Study, simulated

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.search.samplers import SAMPLERS

_CHECKPOINTS = (25, 50, 100, 200)
_BACKBONE = Path(__file__).parents[1] / "tests" / "data" / "backbones" / "roberta_base" / "config.json"
_BUDGET = 0.005

Studies = Mapping[str, Sequence[Study]]  # by sampler, in the order of the seeds


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--seeds", type=int, default=50, help="tasks, each with a study of every sampler (default 50)")
    add("--trials", type=int, default=100, help="of a study (default 100)")
    add("--samplers", type=_samplers, default=("random", "tpe", "factored"), metavar="NAME,…")
    add("--noise", type=float, default=2.2, help="standard deviation of an accuracy near 0.5, in points (default 2.2)")
    add("--results", type=Path, metavar="FILE", help="lines of JSON, one a study; those there are not run again")
    return parser.parse_args(words)


def _samplers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := [name for name in names if name not in SAMPLERS]:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(SAMPLERS)}; got {', '.join(unknown)}.")
    return names


def whole_space() -> SearchSpace:
    """The whole space at half a percent of RoBERTa-base."""
    shape = shape_of(json.loads(_BACKBONE.read_text()))
    return SearchSpace(shape=shape, budget=int(_BUDGET * shape.parameters))


def studies(arguments: argparse.Namespace) -> Studies:
    """All studies, those of the file of results read from there."""
    options = {"trials": arguments.trials, "noise": arguments.noise}
    known: dict[tuple[str, int], Study] = {}
    file: Path | None = arguments.results
    for line in file.read_text().splitlines() if file is not None and file.is_file() else ():
        entry = json.loads(line)
        if entry.pop("options") == options:
            made = Study(**{**entry, "recommended": [Recommended(**one) for one in entry["recommended"]]})
            known[made.sampler, made.seed] = made
    space, checkpoints = whole_space(), {*_CHECKPOINTS, arguments.trials}
    for seed in range(arguments.seeds):
        for sampler in arguments.samplers:
            if (sampler, seed) in known:
                continue
            known[sampler, seed] = made = simulated(sampler, space, seed, checkpoints=checkpoints, **options)
            print(f"seed {seed}: {sampler}", file=sys.stderr, flush=True)
            if file is not None:
                with file.open("a") as stream:
                    stream.write(json.dumps({"options": options, **asdict(made)}) + "\n")
    return {name: [known[name, seed] for seed in range(arguments.seeds)] for name in arguments.samplers}


def mean(values: Sequence[float]) -> str:
    """A mean with the 95% interval of its standard error."""
    half = 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{fmean(values):+.2f} ± {half:.2f}"


def table_lines(found: Studies) -> Iterator[str]:
    """A line for each sampler and checkpoint."""
    first = next(iter(found.values()))
    yield (
        f"{'sampler':<10}{'trials':>7}{'cost':>7}{'gain over published':>21}{'less the first':>17}"
        f"{f'> {GAIN}':>7}{'optimism':>17}{'found at':>10}"
    )
    for sampler, runs in found.items():
        when = median(math.inf if one.found_trial is None else one.found_trial for one in runs)
        for place, one in enumerate(runs[0].recommended):
            at = [each.recommended[place] for each in runs]
            gains = [here.truth - each.tried for here, each in zip(at, runs, strict=True)]
            beside = [other.recommended[place].truth for other in first]
            pairs = [here.truth - other for here, other in zip(at, beside, strict=True)]
            yield (
                f"{sampler:<10}{one.trials:>7}{fmean(here.cost for here in at):>7.1f}{mean(gains):>21}"
                f"{'' if runs is first else mean(pairs):>17}{fmean(gain > GAIN for gain in gains):>7.2f}"
                f"{mean([here.estimate - here.truth for here in at]):>17}{when:>10.0f}"
            )


def main() -> None:
    arguments = arguments_of()
    print(f"{os.cpu_count()} cores, load {' '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    for line in table_lines(studies(arguments)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
