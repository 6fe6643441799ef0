"""The search on planted truths: what each way to propose and to prune finds, with how much training.

    python benchmarks/search.py                        all arms, 50 seeds, 200 trials; hours
    python benchmarks/search.py --seeds 10 --arms "random uniform,tpe"
    python benchmarks/search.py --rugged               what no dimension explains weighs 1.5 points instead of 0.4
    python benchmarks/search.py --results FILE         continues what the file holds, and adds to it
    python benchmarks/search.py --results FILE --tables --figures FOLDER   draws what the file holds
    python benchmarks/search.py --part pruning         what rules of pruning let through, and what they spend
    python benchmarks/search.py --part transfer --seeds 8 --trials 100     what earlier studies are worth, by family
    python benchmarks/search.py --part fronts --seeds 24 --trials 60     score against size: what pruning costs of it
    python benchmarks/search.py --part headroom        what there is to find on each task
    python benchmarks/search.py --part time            how long a proposal takes after up to 20,000 trials

The proposer and the rungs are those of the search, on the whole space of a backbone of RoBERTa-base's shape at half a
percent; only the training is made up (`search_arms.truth`, `search_arms.readings`). All arms have the same tasks and a
trial reads the same for all of them, so that arms are compared seed by seed. The first arm is the baseline.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path

from search_arms.arms import ARMS
from search_arms.figures import arm_figures
from search_arms.fronts import front_lines
from search_arms.headroom import headroom_lines
from search_arms.pruning import pruning_lines
from search_arms.simulation import Mapped, Recommended, Setting, Study, simulated
from search_arms.tables import table_lines
from search_arms.timing import time_lines
from search_arms.transfer import transfer_lines

from dashboards.reports.images import write_images
from search_space.backbones import shape_of
from search_space.backbones.shape import BackboneShape
from search_space.space.space import SearchSpace

_CHECKPOINTS = (25, 100, 200)
_ROBERTA_BASE = {
    "model_type": "roberta",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 50265,
    "max_position_embeddings": 514,
    "type_vocab_size": 1,
}
_BUDGET = 0.005
_NOISES = (2.2, 1.1)


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add(
        "--part",
        choices=("arms", "pruning", "transfer", "fronts", "headroom", "time"),
        default="arms",
        help="what is measured (default arms)",
    )
    add("--seeds", type=int, default=50, help="tasks, each with a study of every arm (default 50)")
    add("--first-seed", type=int, default=0, help="default 0")
    add("--trials", type=int, default=200, help="of a study (default 200)")
    add("--arms", type=_arms, default=tuple(ARMS), metavar="ARM,…", help=f"of {', '.join(ARMS)} (default all)")
    add("--noise", type=float, default=2.2, help="standard deviation of an accuracy near 0.5, in points (default 2.2)")
    add("--rugged", action="store_true", help="1.5 points that are a structure's or a pair's alone, instead of 0.4")
    add("--jobs", type=int, default=1, help="processes (default 1)")
    add("--results", type=Path, metavar="FILE", help="lines of JSON, one a study; those there are not run again")
    add("--tables", action="store_true", help="run nothing: print what the file of results holds")
    add("--figures", type=Path, metavar="FOLDER", help="draw the tables of the arms there as SVG, too")
    arguments = parser.parse_args(words)
    if min(arguments.seeds, arguments.trials, arguments.jobs) < 1:
        parser.error("--seeds, --trials and --jobs must be at least 1.")
    return arguments


def _arms(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(","))
    unknown = [name for name in names if name not in ARMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"must be among {', '.join(ARMS)}; got {', '.join(unknown)}.")
    return names


def whole_space() -> SearchSpace:
    """The whole space at half a percent of RoBERTa-base."""
    shape: BackboneShape = shape_of(_ROBERTA_BASE)
    return SearchSpace(shape=shape, budget=int(_BUDGET * shape.parameters))


def setting_of(arguments: argparse.Namespace) -> Setting:
    checkpoints = [count for count in _CHECKPOINTS if count < arguments.trials]
    return Setting(
        space=whole_space(),
        trials=arguments.trials,
        noise=arguments.noise,
        ruggedness=1.5 if arguments.rugged else 0.4,
        checkpoints=(*checkpoints, arguments.trials),
    )


def _study(setting: Setting, task: tuple[str, int]) -> Study:
    return simulated(ARMS[task[0]], setting, task[1])


def studies(arguments: argparse.Namespace, known: dict[tuple[str, int], Study]) -> Iterator[Study]:
    """Those that are not known yet, seed by seed."""
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    tasks = [(arm, seed) for seed in seeds for arm in arguments.arms if (arm, seed) not in known]
    with _mapping(arguments.jobs) as mapped:
        yield from mapped(partial(_study, setting_of(arguments)), tasks)


@contextmanager
def _mapping(jobs: int) -> Iterator[Mapped]:
    """Does many things in so many processes."""
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield pool.map


def _read(file: Path | None, arguments: argparse.Namespace) -> dict[tuple[str, int], Study]:
    """The studies of a file that were run with the same options."""
    known: dict[tuple[str, int], Study] = {}
    if file is None or not file.is_file():
        return known
    for line in file.read_text().splitlines():
        entry = json.loads(line)
        if entry.pop("options") != _options(arguments):
            continue
        recommended = tuple(Recommended(**one) for one in entry.pop("recommended"))
        study = Study(**entry, recommended=recommended)
        known[study.arm, study.seed] = study
    return known


def _options(arguments: argparse.Namespace) -> dict[str, object]:
    return {"trials": arguments.trials, "noise": arguments.noise, "rugged": arguments.rugged}


def main() -> None:
    arguments = arguments_of()
    print(f"{os.cpu_count()} cores, load {' '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    match arguments.part:
        case "pruning":
            with _mapping(arguments.jobs) as mapped:
                _print(pruning_lines(setting_of(arguments), seeds, _NOISES, mapped))
        case "transfer":
            _print(transfer_lines(setting_of(arguments), seeds))
        case "fronts":
            with _mapping(arguments.jobs) as mapped:
                _print(front_lines(setting_of(arguments), seeds, mapped))
        case "headroom":
            with _mapping(arguments.jobs) as mapped:
                _print(headroom_lines(setting_of(arguments), seeds, mapped))
        case "time":
            _print(time_lines(whole_space()))
        case _:
            _compare(arguments)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


def _compare(arguments: argparse.Namespace) -> None:
    """Run the studies of all arms that are not known yet, and print their tables."""
    known = _read(arguments.results, arguments)
    for study in () if arguments.tables else studies(arguments, known):
        known[study.arm, study.seed] = study
        print(f"seed {study.seed}: {study.arm}", file=sys.stderr, flush=True)
        if arguments.results is not None:
            with arguments.results.open("a") as file:
                file.write(json.dumps({"options": _options(arguments), **asdict(study)}) + "\n")
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    done = {arm: [known[arm, seed] for seed in seeds if (arm, seed) in known] for arm in arguments.arms}
    done = {arm: runs for arm, runs in done.items() if runs}
    words = f"{arguments.noise} points of noise, {'rugged' if arguments.rugged else 'smooth'}; tasks: " + ", ".join(
        f"{arm} {len(runs)}" for arm, runs in done.items()
    )
    _print([words, *table_lines(done)])
    if arguments.figures is not None and done:
        _print(f"wrote {file}" for file in write_images(arm_figures(done), arguments.figures, "svg"))


if __name__ == "__main__":
    main()
