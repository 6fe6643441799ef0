"""What there is to find on planted truths: the best configuration of the space, for who sees true scores.

The moves of the search are made on the truly best configurations, round after round, without noise and whatever the
number of trials. There may be better ones still.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

from search_arms.simulation import GAIN, OPENING, Mapped, Setting
from search_arms.statistics import share
from search_arms.truth import PlantedTruth
from studies.search.factored.draws import Drawer
from studies.search.factored.genes import Genes
from studies.search.factored.genome import Genome
from studies.search.factored.moves import Mover, Moves, Parents

_DRAWS, _ROUNDS, _CHILDREN = 1500, 25, 120
_PARENTS, _DECAY = 100, 25.0
_NARROW = (1.0, 1.5, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What there is to find on a task, in true points above the best published method as it is tried first.

    Attributes:
        seed: Of the task.
        tuned: Of the best published method with its rates tuned.
        best: Of the best configuration that was found.
        draws: Of configurations drawn uniformly over structures, edits on both sides in 7 of 10.
    """

    seed: int
    tuned: float
    best: float
    draws: tuple[float, ...]


def headroom(setting: Setting, seed: int, *, draws: int = _DRAWS, rounds: int = _ROUNDS) -> Headroom:
    """Look for the best configuration of a task.

    Args:
        setting: Of the arms; its noise plays no part.
        seed: Of the task.
        draws: To begin with.
        rounds: Of children of the best so far.
    """
    truth = PlantedTruth(setting.space, seed, ruggedness=setting.ruggedness)
    tried = max(truth.published_as_tried(OPENING))
    genome = Genome(setting.space)
    drawer = Drawer(genome)
    mover = Mover(genome, drawer, Moves())
    draw = random.Random(f"headroom/{seed}")
    leads: dict[Genes, float] = {}

    def try_all(genes: Iterable[Genes]) -> None:
        for one in genes:
            if one not in leads:
                leads[one] = truth.score(genome.candidate(one)) - tried

    try_all(drawer.fresh(draw) for _ in range(draws))
    drawn = tuple(leads.values())
    for _ in range(rounds):
        parents = Parents(sorted(leads, key=lambda one: leads[one], reverse=True)[:_PARENTS], _DECAY)
        try_all([mover.child(draw, parents) for _ in range(_CHILDREN)])
    return Headroom(seed=seed, tuned=truth.best_published() - tried, best=max(leads.values()), draws=drawn)


def headroom_lines(setting: Setting, seeds: Sequence[int], mapped: Mapped) -> Iterator[str]:
    """A line for every task, and what they say together."""
    yield "true points above the best published method as it is tried first"
    yield f"{'task':>4} {'rates tuned':>12} {'best there is':>14} {'draws above 0':>14} {f'above {GAIN}':>10}"
    found = []
    for one in mapped(partial(headroom, setting), seeds):
        found.append(one)
        better, enough = _above(one.draws, 0.0), _above(one.draws, GAIN)
        yield f"{one.seed:>4} {one.tuned:>+12.2f} {one.best:>+14.2f} {better:>14.1%} {enough:>10.1%}"
    best = [one.best for one in found]
    better, enough = (fmean(_above(one.draws, least) for one in found) for least in (0.0, GAIN))
    yield f"{len(found)} tasks: the best there is {median(best):+.1f} (median; {min(best):+.1f} to {max(best):+.1f});"
    yield f"of draws {better:.1%} are better than the best published method, {enough:.1%} by {GAIN} points"
    yield ", ".join(f"below {least} in {sum(one < least for one in best)}" for least in _NARROW)


def _above(values: Sequence[float], least: float) -> float:
    return share([value > least for value in values]).value
