"""What earlier studies are worth: tasks of one family, each searched with and without what the others taught.

One task is left out at a time. Its study learns from those of the other tasks of its family, from one of a task where
everything is the other way round, or from all of these; it is compared with the study that learns nothing, which has
the same seed. Nothing but the beginning of a study and what is expected of rates differs.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from search_arms.arms import BY_CHANCE
from search_arms.simulation import Arm, Run, Setting, best_estimate
from search_arms.statistics import mean
from search_arms.truth import PlantedTruth, drawn
from search_space.published import COMPARED
from search_space.space.space import SearchSpace
from studies.search.factored.genome import Genome
from studies.search.learning import Source, lessons_of
from studies.search.lessons import Lessons
from studies.search.opening import Opening
from studies.search.samplers import SAMPLERS

FAMILY = 4
"""Tasks of a family."""

KINSHIP = 0.6
"""Share of the variance of every effect, and of every best rate, that the tasks of a family have in common."""

HARM = 0.3
"""Points that learning may cost at most."""

_FACTORED = Arm(
    name="factored",
    sampler=lambda truth: SAMPLERS["factored"],
    rungs=BY_CHANCE,
    recommend=best_estimate,
)


class RelatedTruth(PlantedTruth):
    """The truth of a task of a family.

    Args:
        space: What is searched.
        seed: Of the task.
        family: Of its family.
        ruggedness: Of structures and pairs.
        is_opposite: Whether what is good for the others is bad for it, and high rates are best where theirs are low.
    """

    def __init__(
        self, space: SearchSpace, seed: int, *, family: int, ruggedness: float = 0.4, is_opposite: bool = False
    ) -> None:
        """Draw the task."""
        super().__init__(space, seed, ruggedness=ruggedness)
        self._family = family
        self._sign = -1.0 if is_opposite else 1.0

    def _drawn(self, *parts: object, mean: float = 0.0, spread: float = 1.0) -> float:
        shared, own = drawn("family", self._family, *parts), drawn(self.seed, *parts)
        if parts[0] == "edge":
            return mean + spread * own
        together = mean + spread * math.sqrt(KINSHIP) * shared
        return self._sign * together + spread * math.sqrt(1 - KINSHIP) * own


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What came of one study.

    Attributes:
        family: Of the task.
        task: Its number in the family.
        learned_from: ``none``, ``family``, ``opposite`` or ``both``.
        starts: How many configurations were tried first.
        truths: True scores of what was recommended at every checkpoint, in points.
    """

    family: int
    task: int
    learned_from: str
    starts: int
    truths: tuple[float, ...]


def transfers(setting: Setting, family: int) -> list[Transfer]:
    """The studies of a family: of each task without learning, and learning from the others, a foe, or both."""
    tasks = [100 * family + task for task in range(FAMILY)]
    alone = [_studied(setting, family, task, Lessons()) for task in tasks]
    foe = _studied(setting, family, 100 * family + FAMILY, Lessons(), is_opposite=True)[0]
    found = [_transfer(family, task, "none", *one) for task, one in enumerate(alone)]
    for left_out in range(FAMILY):
        others = [one[0] for task, one in enumerate(alone) if task != left_out]
        for word, runs in {"family": others, "opposite": [foe], "both": [*others, foe]}.items():
            learned = _lessons(runs, setting.space)
            again = _studied(setting, family, tasks[left_out], learned)
            found.append(_transfer(family, left_out, word, *again))
    return found


def _lessons(runs: Sequence[Run], space: SearchSpace) -> Lessons:
    genome = Genome(space)
    sources = [
        Source(name=str(place), history=run.history, viewer=genome, ranges=space.options.learning_rates)
        for place, run in enumerate(runs)
    ]
    return lessons_of(sources, space, replaceable=COMPARED)


def _studied(
    setting: Setting, family: int, seed: int, lessons: Lessons, *, is_opposite: bool = False
) -> tuple[Run, tuple[float, ...]]:
    """A study of a task, and the true scores of what it recommends at the checkpoints."""
    truth = RelatedTruth(setting.space, seed, family=family, ruggedness=setting.ruggedness, is_opposite=is_opposite)
    published = tuple(one for one in COMPARED if one not in lessons.replaced)
    opening = Opening(published=published, lessons=lessons)
    run = Run(_FACTORED, setting, seed, truth=truth, opening=opening)
    truths = []
    for count in range(1, setting.trials + 1):
        run.step()
        if count in setting.checkpoints:
            truths.append(run.recommended().truth)
    return run, tuple(truths)


def _transfer(family: int, task: int, word: str, run: Run, truths: tuple[float, ...]) -> Transfer:
    return Transfer(family=family, task=task, learned_from=word, starts=len(run.opening.lessons.starts), truths=truths)


def transfer_lines(setting: Setting, families: Iterable[int]) -> Iterator[str]:
    """What learning changed, the studies of some families being run; one line for each, and a table in the end."""
    studies: list[Transfer] = []
    for family in families:
        studies += transfers(setting, family)
        yield f"family {family}: {len(studies)} studies"
    yield from table_of(studies, setting.checkpoints)


def table_of(studies: Sequence[Transfer], checkpoints: Sequence[int]) -> Iterator[str]:
    """What learning changed, paired by task."""
    alone = {(one.family, one.task): one for one in studies if one.learned_from == "none"}
    yield "true points of what is recommended above that of the same study without learning"
    yield f"{'after trials':<16}{'tasks':>7}{'starts':>8}" + "".join(f"{count:>22}" for count in checkpoints)
    for word in ("family", "opposite", "both"):
        runs = [one for one in studies if one.learned_from == word]
        cells = []
        for place in range(len(checkpoints)):
            gains = [one.truths[place] - alone[one.family, one.task].truths[place] for one in runs]
            found = mean(gains)
            verdict = "" if found.value >= -HARM else " worse"
            cells.append(f"{found.value:+.2f} ± {found.high - found.value:.2f}{verdict}")
        starts = sum(one.starts for one in runs) / len(runs)
        yield f"{word:<16}{len(runs):>7}{starts:>8.1f}" + "".join(f"{cell:>22}" for cell in cells)
