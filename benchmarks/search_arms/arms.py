"""The arms by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from search_arms.rivals import Evolution, Forest
from search_arms.simulation import OPENING, Arm, Recommend, Search, best_estimate, best_score
from search_arms.training import STEPS
from search_arms.truth import expected_gain
from search_space.space.space import Candidate, SearchSpace
from studies.search.factored.moves import Moves
from studies.search.factored.observation import Observation
from studies.search.factored.sampler import FactoredSearch
from studies.search.factored.settings import FactoredSettings
from studies.search.factored.trends import no_rules
from studies.search.factored.view import View
from studies.search.rungs import Protected, Rule, RungPlan
from studies.search.samplers import SAMPLERS, Sampler

UNPRUNED = RungPlan(steps=(STEPS // 4, STEPS // 2), reduction=2)
"""Rungs at a quarter and a half, where nothing stops."""

SIGNIFICANT = RungPlan(steps=(STEPS // 4, STEPS // 2), reduction=2, rule=Rule.SIGNIFICANCE, protected=Protected.BEST)
"""Rungs at a quarter and a half, where what is no worse than luck goes on."""

BY_CHANCE = replace(SIGNIFICANT, rule=Rule.CHANCE)
"""The same rungs, where what may still be the best goes on."""


def _before(name: str, sampler: Sampler) -> Arm:
    """A sampler with the rungs as they were."""
    return Arm(
        name=name,
        sampler=lambda truth: sampler,
        rungs=UNPRUNED,
        recommend=best_score,
    )


def _repaired(name: str, sampler: Sampler, recommend: Recommend = best_estimate) -> Arm:
    """A sampler with all repairs, and recommendations by estimate."""
    return Arm(name=name, sampler=lambda truth: sampler, rungs=BY_CHANCE, recommend=recommend)


def _searching(name: str, search: Callable[[SearchSpace, int], Search]) -> Arm:
    """A search of the whole history, with all repairs."""
    return replace(_repaired(name, SAMPLERS["random"]), search=search)


def _factored(name: str, settings: FactoredSettings | None = None) -> Arm:
    return _searching(name, lambda space, seed: FactoredSearch(space, seed=seed, settings=settings))


_SIX = ("mam_adapter", "lora_qv", "lora_ffn", "scaled_parallel_adapter_ffn", "prefix_tuning", "head_only")
"""What the shipped study ``docstrings`` begins with: no more than a quarter of 25 trials."""


_ODDS_OF_A_POINT = 1.3
"""Log odds, in units of the papers' rules, that make a configuration be expected to be one point better."""


def _means_of_truth(view: View) -> float:
    return _ODDS_OF_A_POINT * expected_gain(view)


_TOLD = FactoredSettings(rules=_means_of_truth)
"""For who knows from which centres the effects of a task are drawn, and what a size is worth: no search can."""


class _WithoutCurve:
    """Hears of ends alone."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        self._search = FactoredSearch(space, seed=seed)
        self._heard: list[Observation] = []

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        for one in history[len(self._heard) :]:
            ends = tuple(reading for reading in one.readings if reading.fraction == 1.0)
            self._heard.append(replace(one, readings=ends))
        return self._search.candidate(self._heard, number=number, retry=retry)


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        _before("random uniform", SAMPLERS["random"]),
        _before("tpe", SAMPLERS["tpe"]),
        _repaired("random + repairs", SAMPLERS["random"]),
        _repaired("tpe + repairs", SAMPLERS["tpe"]),
        _searching("evolution", Evolution),
        _searching("forest", Forest),
        _factored("factored"),
        replace(_factored("factored (six first)"), opening=replace(OPENING, published=_SIX)),
        _factored("factored - join", FactoredSettings(moves=Moves(join=0.0))),
        _factored("factored - prior", FactoredSettings(rules=no_rules)),
        _searching("factored - curve", _WithoutCurve),
        replace(_factored("factored - losses"), hears_losses=False),
        replace(_factored("factored + means of truth", _TOLD), recommend=partial(best_estimate, settings=_TOLD)),
    )
}
"""What is compared; the first is what the others are compared with."""
