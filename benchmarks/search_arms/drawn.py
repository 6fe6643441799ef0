"""Trials that nothing has learned from: what rules of pruning are compared on."""

from collections.abc import Sequence
from dataclasses import dataclass

from search_arms.simulation import OPENING, Setting
from search_arms.truth import PlantedTruth
from search_space.space.space import Candidate, SearchSpace
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS
from studies.store.records import TrialState

SURVIVE = 0.9
"""Share of the better trials that are to survive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A trial before it is trained.

    Attributes:
        candidate: What was drawn, or a published method.
        truth: True score, in points.
    """

    candidate: Candidate
    truth: float

    @property
    def fingerprint(self) -> str:
        """Of what was drawn."""
        return self.candidate.fingerprint

    @property
    def method(self) -> str | None:
        """The published method; None for draws."""
        return self.candidate.method


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The trials of a task.

    Attributes:
        seed: Of the task.
        space: That they are drawn from.
        trials: In the order in which they come.
    """

    seed: int
    space: SearchSpace
    trials: Sequence[Drawn]

    @property
    def best_published(self) -> float:
        """True score of the best published method, as tried."""
        return max(one.truth for one in self.trials if one.method is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a rule did.

    Attributes:
        survived: Of every draw that is truly better than every published method, whether it was trained to its end.
        steps: Spent, as a share of those of all trials at full length.
    """

    survived: Sequence[bool]
    steps: float


def drawn_task(setting: Setting, seed: int) -> Task:
    """Published methods and draws."""
    truth = PlantedTruth(setting.space, seed, ruggedness=setting.ruggedness)
    proposer = Proposer(setting.space, sampler=SAMPLERS["random"], seed=seed, opening=OPENING)
    trials = []
    for number in range(setting.trials):
        candidate = proposer.propose().candidate
        proposer.close(number, TrialState.PRUNED)
        trials.append(Drawn(candidate=candidate, truth=truth.score(candidate)))
    return Task(seed=seed, space=setting.space, trials=trials)
