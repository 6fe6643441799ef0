"""Whether `discover` ranks what matters as planted truths do.

    python benchmarks/discover.py                           6 tasks of 500 trials, two samplers
    python benchmarks/discover.py --tasks 20 --trials 100 --arms factored --first-seed 90

The search is the real one on made-up tasks (`search_arms`). Printed is Spearman's correlation of the total shares of
variance with the true ones, and by how much the Shapley values of what the winner has changed of MAM miss its whole
difference at most.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

import numpy as np
from scipy.stats import spearmanr
from search import whole_space
from search_arms.arms import ARMS
from search_arms.simulation import Run, Setting
from search_arms.truth import PlantedTruth

from search_space.configuration import Configuration
from search_space.published.point import PublishedPoint
from search_space.space.space import SearchSpace
from studies.queries.baselines import resized
from studies.queries.discover import Knowledge, discovered
from studies.queries.discover.between import Between
from studies.queries.discover.importance import choice_words
from studies.queries.discover.sobol import TOGETHER, base, crossed, factors, together, total
from studies.search.factored.genes import Genes

POINTS = 100.0
"""Of a score of 1."""

_ARMS = ("random + repairs", "factored")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one study.

    Attributes:
        arm: Who searched.
        rank: Spearman's correlation of the total shares with the true ones.
        gap: By how much the Shapley values of the winner's differences from MAM miss the whole difference, in points.
    """

    arm: str
    rank: float
    gap: float


class Sized:
    """Configurations of a space, once they are sized."""

    def __init__(self) -> None:
        self._known: dict[Genes, Configuration] = {}

    def scores(self, knowledge: Knowledge, truth: PlantedTruth, genes: Sequence[Genes]) -> np.ndarray:
        """True scores in points."""
        return np.array([truth.at(self._configuration(knowledge, one), _rates(one)) for one in genes])

    def _configuration(self, knowledge: Knowledge, genes: Genes) -> Configuration:
        """Solved once, whatever the rates."""
        attention, ffn = (side and replace(side, rate=0.0) for side in (genes.attention, genes.ffn))
        key = replace(genes, attention=attention, ffn=ffn)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = knowledge.genome.candidate(key).configuration
        return known


def _rates(genes: Genes) -> list[float]:
    return [0.0 if side is None else side.rate for side in (genes.attention, genes.ffn)]


def studied(arm: str, space: SearchSpace, seed: int, trials: int) -> tuple[Knowledge, PlantedTruth]:
    """A study of an arm on the task of a seed."""
    setting = Setting(space=space, trials=trials, noise=2.2, ruggedness=0.4, checkpoints=(trials,))
    truth = PlantedTruth(space, seed)
    run = Run(ARMS[arm], setting, seed, truth=truth)
    for _ in range(trials):
        run.step()
    return Knowledge(space, run.history, metric="accuracy"), truth


def ranked(knowledge: Knowledge, truth: PlantedTruth, sized: Sized) -> float:
    """Spearman's correlation of the total shares with the true ones."""
    some = base(knowledge.measure)
    own = sized.scores(knowledge, truth, some)[None]
    true = {
        choice_words(factor): float(total(own, sized.scores(knowledge, truth, factor.changed)[None])[0])
        for factor in factors(knowledge.measure, some)
    }
    true[TOGETHER] = float(
        together([sized.scores(knowledge, truth, group)[None] for group in crossed(knowledge.measure, some)])[0]
    )
    (card,) = discovered(knowledge, ["matters"])
    return float(spearmanr(card.data["share"], [true[one] for one in card.data["choice"]])[0])


def missed(knowledge: Knowledge) -> float:
    """By how much the Shapley values of what the winner has changed of MAM miss its whole difference, in points."""
    first = resized(PublishedPoint("mam_adapter"), knowledge.space)
    between = Between(first, knowledge.candidates([knowledge.winner])[0], knowledge.space, knowledge.expected)
    return POINTS * abs(sum(step.value.mean for step in between.steps) - between.difference.mean)


def seen(arm: str, seed: int, trials: int, space: SearchSpace) -> Seen:
    """Run a study and ask it."""
    knowledge, truth = studied(arm, space, seed, trials)
    return Seen(arm=arm, rank=ranked(knowledge, truth, Sized()), gap=missed(knowledge))


def lines(found: Sequence[Seen], trials: int) -> list[str]:
    """What is printed in the end."""
    said = []
    for arm in dict.fromkeys(one.arm for one in found):
        own = [one.rank for one in found if one.arm == arm]
        ranks = f"mean {fmean(own):.2f}, least {min(own):.2f}, {len(own)} tasks"
        said.append(f"{arm:<18}Spearman's correlation of total shares after {trials} trials: {ranks}")
    return [*said, f"Shapley values miss the difference by at most {max(one.gap for one in found):.1e} points."]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=6, help="default 6")
    parser.add_argument("--first-seed", type=int, default=0, help="default 0")
    parser.add_argument("--trials", type=int, default=500, help="of a study (default 500)")
    parser.add_argument("--arms", type=lambda text: tuple(text.split(",")), default=_ARMS, metavar="ARM,…")
    given = parser.parse_args()
    unknown = [arm for arm in given.arms if arm not in ARMS]
    if unknown or min(given.tasks, given.trials) < 1:
        parser.error(f"arms must be among {', '.join(ARMS)}, tasks and trials at least 1.")
    seeds = range(given.first_seed, given.first_seed + given.tasks)
    found = [seen(arm, seed, given.trials, whole_space()) for seed, arm in product(seeds, given.arms)]
    print(*lines(found, given.trials), sep="\n")


if __name__ == "__main__":
    main()
