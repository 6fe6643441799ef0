"""What `discover` says on planted truths: intervals that hold the truth, right signs, the ranks of Sobol shares.

    python benchmarks/discover.py                           200 tasks of 100 trials, two samplers; an hour
    python benchmarks/discover.py --tasks 20 --arms factored --first-seed 90
    python benchmarks/discover.py --importance --trials 500 --tasks 6
    python benchmarks/discover.py --results FILE            continues what the file holds, and adds to it
    python benchmarks/discover.py --results FILE --report   prints what it holds, and runs nothing

The model of the intervals was chosen on seeds below 90.

The search is the real one on made-up tasks (`search_arms`). Of every matched contrast the 90% interval is compared with
the mean true difference of the same pairs, at the same rates; what collapses counts as the model takes it. On every
other task nothing but form and the written tensor has any effect, so that what is resolved of the rest is false.

Columns: the share of contrasts *with an effect* whose interval holds it; how much is resolved; how much of what has no
effect is resolved, which is 1 - the coverage there. The second table has the signs that are wrong: where something is
said (resolved; type S), where the *estimate* is above two half-widths of its interval, and where the *truth* is above
two. The last is no error of what is said: such truths are picked by lying far outside of most intervals, and where
trials tell nothing the sign of an estimate is a coin's. So beside it stands what it would be if the posterior were
exactly right: of truths drawn from it, by its own means and intervals. Below stands by how much the Shapley values of
what the winner has changed of MAM miss its difference at most.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from statistics import NormalDist, fmean

import numpy as np
from search import whole_space
from search_arms.arms import ARMS
from search_arms.simulation import Run, Setting
from search_arms.statistics import share
from search_arms.truth import PlantedTruth

from search_space.configuration import Configuration
from search_space.published.point import PublishedPoint
from search_space.space.space import SearchSpace
from studies.queries.baselines import resized
from studies.queries.discover import Knowledge, discovered
from studies.queries.discover.answer import REACH
from studies.queries.discover.between import Between
from studies.queries.discover.contrasts import LEAST, Contrast, Pairs, contrasts, pairs
from studies.queries.discover.importance import Importance
from studies.queries.discover.measure import Measure
from studies.queries.discover.sobol import base, crossed, factors, together, total
from studies.search.factored.genes import Genes

POINTS = 100.0
"""Of a score of 1."""

WITHOUT_EFFECT = ("read", "insertion", "gate", "heads", "activation", "scale")
"""Dimensions that do nothing on every other task."""

CLEAR = 2.0
"""Half-widths of its interval that an effect must have to be clear."""

_NORMAL = NormalDist()
_ARMS = ("random + repairs", "factored")
_WIDTHS = (10, 22, 10, 13, 12, 8)
_SIGN_WIDTHS = (30, 29, 32, 20)


class WithoutEffects(PlantedTruth):
    """A task on which some dimensions do nothing."""

    def _effect(self, side: str, dimension: str, value: str) -> float:
        return 0.0 if dimension in WITHOUT_EFFECT else super()._effect(side, dimension, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A contrast of a study and its truth, in points.

    Attributes:
        arm: Who searched.
        seed: Of the task.
        contrast: Side, dimension and both values.
        is_null: Whether its dimension does nothing on the task.
        value: What is expected.
        reach: Half of the 90% interval.
        truth: The mean true difference of the pairs.
    """

    arm: str
    seed: int
    contrast: str
    is_null: bool
    value: float
    reach: float
    truth: float

    @property
    def is_covered(self) -> bool:
        """Whether the interval holds the truth."""
        return abs(self.value - self.truth) <= self.reach

    @property
    def is_resolved(self) -> bool:
        """Whether the interval does not hold zero."""
        return abs(self.value) > self.reach

    @property
    def has_sign(self) -> bool:
        """Whether the sign is right."""
        return (self.value > 0) == (self.truth > 0)

    def chance(self, has_sign: bool) -> float:
        """The posterior probability of a clear true effect of the sign that is expected, or of the other."""
        mean = abs(self.value) if has_sign else -abs(self.value)
        return _NORMAL.cdf(REACH * (mean / self.reach - CLEAR))


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of one study; a line of the file of results.

    Attributes:
        arm: Who searched.
        seed: Of the task.
        trials: Of the study.
        contrasts: Every one; empty where ranks were asked for.
        gap: By how much the Shapley values of the winner's differences from MAM miss the whole difference, in points.
        rank: Spearman's correlation of the total shares with the true ones; None where contrasts were asked for.
    """

    arm: str
    seed: int
    trials: int
    contrasts: tuple[Checked, ...] = ()
    gap: float = 0.0
    rank: float | None = None

    @classmethod
    def of(cls, line: str) -> "Seen":
        """From a line of JSON."""
        entry = json.loads(line)
        return cls(**entry | {"contrasts": tuple(Checked(**one) for one in entry["contrasts"])})

    def line(self) -> str:
        """As a line of JSON."""
        return json.dumps(asdict(self)) + "\n"


class Asked:
    """What is the same for all studies of a space: pairs that are compared, and configurations once they are sized."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Contrast, Pairs]] | None = None
        self._known: dict[Genes, Configuration] = {}

    def pairs(self, measure: Measure) -> list[tuple[Contrast, Pairs]]:
        """Every contrast that has enough of them; draws of a space are the same in all of its studies."""
        if self._pairs is None:
            found = [(contrast, pairs(measure, contrast)) for contrast in contrasts(measure)]
            self._pairs = [(contrast, some) for contrast, some in found if len(some) >= LEAST]
        return self._pairs

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


def studied(
    arm: str, space: SearchSpace, seed: int, trials: int, *, noise: float = 2.2
) -> tuple[Knowledge, PlantedTruth]:
    """A study of an arm on the task of a seed; odd ones are without most effects."""
    setting = Setting(space=space, trials=trials, noise=noise, ruggedness=0.4, checkpoints=(trials,))
    truth = (WithoutEffects if seed % 2 else PlantedTruth)(space, seed)
    run = Run(ARMS[arm], setting, seed, truth=truth)
    for _ in range(trials):
        run.step()
    return Knowledge(space, run.history, metric="accuracy"), truth


def checked(arm: str, knowledge: Knowledge, truth: PlantedTruth, asked: Asked) -> Iterator[Checked]:
    """Every contrast of a study."""
    for contrast, some in asked.pairs(knowledge.measure):
        having, lacking = ([knowledge.tuned(one) for one in group] for group in (some.having, some.lacking))
        effect = knowledge.effect(having, lacking)
        differences = asked.scores(knowledge, truth, having) - asked.scores(knowledge, truth, lacking)
        yield Checked(
            arm=arm,
            seed=truth.seed,
            contrast=_named(contrast),
            is_null=isinstance(truth, WithoutEffects) and contrast.dimension in WITHOUT_EFFECT,
            value=POINTS * effect.mean,
            reach=POINTS * (effect.high - effect.mean),
            truth=float(differences.mean()),
        )


def _named(contrast: Contrast) -> str:
    return f"{contrast.side} {contrast.dimension}: {contrast.value} / {contrast.other}"


def ranked(knowledge: Knowledge, truth: PlantedTruth, asked: Asked) -> float:
    """Spearman's correlation of the total shares with the true ones."""
    from scipy.stats import spearmanr

    some = base(knowledge.measure)
    own = asked.scores(knowledge, truth, some)[None]
    true = {
        (factor.side, factor.dimension): float(total(own, asked.scores(knowledge, truth, factor.changed)[None])[0])
        for factor in factors(knowledge.measure, some)
    }
    groups = [asked.scores(knowledge, truth, group)[None] for group in crossed(knowledge.measure, some)]
    (answer,) = discovered(knowledge, ["V1"])
    rows = [row for row in answer.rows if isinstance(row, Importance)]
    both = float(together(groups)[0])
    return float(spearmanr([row.value for row in rows], [true.get((row.side, row.dimension), both) for row in rows])[0])


def table(found: Sequence[Checked]) -> Iterator[str]:
    """What is counted, arm by arm; coverage with its 95% interval by tasks."""
    yield _row("", ("contrasts", "covered", "resolved", "false rules", "half width", "error"), _WIDTHS)
    for arm, some in _by_arm(found):
        null = [one for one in some if one.is_null]
        real = [one for one in some if not one.is_null]
        low, high = _by_tasks(real)
        values = (
            f"{len(some):,}",
            f"{fmean(one.is_covered for one in real):.3f} [{low:.3f}, {high:.3f}]",
            f"{fmean(one.is_resolved for one in some):.1%}",
            f"{fmean(one.is_resolved for one in null):.1%}" if null else "-",
            f"{fmean(one.reach for one in some):.2f}",
            f"{math.sqrt(fmean((one.value - one.truth) ** 2 for one in some)):.2f}",
        )
        yield _row(arm, values, _WIDTHS)


def signs(found: Sequence[Checked]) -> Iterator[str]:
    """How often the sign is wrong, by what the effects are picked by, with Wilson's 95% intervals."""
    yield _row("wrong signs", ("resolved", "estimate clear", "truth clear", "if it were exact"), _SIGN_WIDTHS)
    for arm, some in _by_arm(found):
        told = [one for one in some if one.is_resolved and not one.is_null]
        groups = (
            told,
            [one for one in told if abs(one.value) > CLEAR * one.reach],
            [one for one in some if abs(one.truth) > CLEAR * one.reach],
        )
        yield _row(arm, (*map(_wrong, groups), _if_exact(some)), _SIGN_WIDTHS)


def _wrong(some: Sequence[Checked]) -> str:
    if not some:
        return "0 of 0"
    wrong = [not one.has_sign for one in some]
    interval = share(wrong)
    return f"{sum(wrong)} of {len(some)}, {interval.value:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _if_exact(some: Sequence[Checked]) -> str:
    """How many truths would be clear, and of those have the other sign, if they were drawn from the posterior."""
    wrong, right = (sum(one.chance(of_sign) for one in some) for of_sign in (False, True))
    return f"{wrong:.1f} of {wrong + right:.0f}, {wrong / (wrong + right):.1%}"


def _by_arm(found: Sequence[Checked]) -> Iterator[tuple[str, list[Checked]]]:
    for arm in dict.fromkeys(one.arm for one in found):
        yield arm, [one for one in found if one.arm == arm]


def _row(name: str, cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"{name:<18}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))


def _by_tasks(some: Sequence[Checked]) -> tuple[float, float]:
    """The 95% interval of the coverage; the contrasts of a task are not independent, tasks are."""
    tasks: dict[int, list[bool]] = {}
    for one in some:
        tasks.setdefault(one.seed, []).append(one.is_covered)
    means = [fmean(each) for each in tasks.values()]
    if len(means) < 2:
        interval = share([one.is_covered for one in some])
        return interval.low, interval.high
    half = 1.96 * float(np.std(means, ddof=1)) / math.sqrt(len(means))
    return fmean(means) - half, min(1.0, fmean(means) + half)


def _arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tasks", type=int, default=200, help="default 200")
    add("--first-seed", type=int, default=0, help="default 0")
    add("--trials", type=int, default=100, help="of a study (default 100)")
    add(
        "--arms",
        type=lambda text: tuple(text.split(",")),
        default=_ARMS,
        metavar="ARM,…",
        help=f"default {', '.join(_ARMS)}",
    )
    add("--importance", action="store_true", help="compare the ranks of V1 with the true shares instead")
    add("--results", type=Path, metavar="FILE", help="lines of JSON, one a study; those there are not run again")
    add("--report", action="store_true", help="print what the file of results holds of these tasks; run nothing")
    arguments = parser.parse_args(words)
    if arguments.report and arguments.results is None:
        parser.error("--report needs --results FILE.")
    unknown = [arm for arm in arguments.arms if arm not in ARMS]
    if unknown or min(arguments.tasks, arguments.trials) < 1:
        parser.error(f"arms must be among {', '.join(ARMS)}, tasks and trials at least 1.")
    return arguments


def missed(knowledge: Knowledge) -> float:
    """By how much the Shapley values of what the winner has changed of MAM miss its whole difference, in points."""
    first = resized(PublishedPoint("mam_adapter"), knowledge.space)
    between = Between(first, knowledge.candidates([knowledge.winner])[0], knowledge.space, knowledge.joint)
    return POINTS * abs(sum(step.value.mean for step in between.steps) - between.difference.mean)


def seen(arm: str, seed: int, trials: int, asked: Asked, space: SearchSpace, *, importance: bool) -> Seen:
    """Run a study and ask it."""
    knowledge, truth = studied(arm, space, seed, trials)
    if importance:
        return Seen(arm=arm, seed=seed, trials=trials, rank=ranked(knowledge, truth, asked))
    contrasts = tuple(checked(arm, knowledge, truth, asked))
    return Seen(arm=arm, seed=seed, trials=trials, contrasts=contrasts, gap=missed(knowledge))


def told(found: Sequence[Seen], trials: int) -> Iterator[str]:
    """What is printed in the end."""
    ranks = [one for one in found if one.rank is not None]
    for arm in dict.fromkeys(one.arm for one in ranks):
        own = [one.rank for one in ranks if one.arm == arm and one.rank is not None]
        said = f"mean {fmean(own):.2f}, least {min(own):.2f}, {len(own)} tasks"
        yield f"{arm:<18}Spearman's correlation of total shares after {trials} trials: {said}"
    compared = [one for one in found if one.contrasts]
    if compared:
        contrasts = [contrast for one in compared for contrast in one.contrasts]
        yield from (*table(contrasts), "", *signs(contrasts))
        yield f"Shapley values miss the difference by at most {max(one.gap for one in compared):.1e} points."


def main() -> None:
    arguments = _arguments()
    space, asked = whole_space(), Asked()
    file: Path | None = arguments.results
    known = [Seen.of(line) for line in file.read_text().splitlines()] if file is not None and file.is_file() else []
    found = []
    for seed, arm in product(range(arguments.first_seed, arguments.first_seed + arguments.tasks), arguments.arms):
        before = [
            one
            for one in known
            if (one.arm, one.seed, one.trials) == (arm, seed, arguments.trials)
            and (one.rank is not None) == arguments.importance
        ]
        found += before
        if before or arguments.report:
            continue
        new = seen(arm, seed, arguments.trials, asked, space, importance=arguments.importance)
        print(f"seed {seed}: {arm}", file=sys.stderr, flush=True)
        found.append(new)
        if file is not None:
            with file.open("a") as lines:
                lines.write(new.line())
    print(*told(found, arguments.trials), sep="\n")


if __name__ == "__main__":
    main()
