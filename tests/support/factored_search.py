"""Trials of the whole space with scores that a formula gives, for the tests of the factored sampler."""

import math
from collections.abc import Sequence
from dataclasses import replace

from support.simulated_search import whole_space as whole_space

from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.records import TrialState
from studies.surrogate.candidate_search import FactoredSearch
from studies.surrogate.observation import MeasuredScore, Observation

ERROR = 0.02


def score_of(candidate: Candidate) -> float:
    """Low-rank edits at either side are good, searched rates near 4e-3 better; the size hides noise."""
    score = 0.4
    for edits in (candidate.configuration.attention, candidate.configuration.ffn):
        if edits:
            form = edits[0].form.name
            searched = float(candidate.parameters[f"learning_rate.{form}"])
            score += 0.03 + 0.03 * (form == "lowrank") - 0.01 * abs(math.log(searched / 4e-3))
    return score + 0.002 * math.sin(1e4 * candidate.counts.stored)


def observed(candidate: Candidate, number: int) -> Observation:
    """Return a trial at its end; every third is pruned at half its length."""
    score, is_pruned = score_of(candidate), number % 3 == 2
    half = MeasuredScore(fraction=0.5, score=score - 0.05, standard_error=ERROR)
    full = MeasuredScore(fraction=1.0, score=score, standard_error=ERROR)
    state = TrialState.PRUNED if is_pruned else TrialState.COMPLETE
    return replace(
        Observation.of(candidate, number=number, state=state, readings=(half,) if is_pruned else (half, full)),
        ended_at=float(number),
    )


def drawn(
    space: SearchSpace, count: int, *, published: tuple[str, ...] = ("lora_qv", "mam_adapter"), seed: int = 0
) -> list[Observation]:
    """So many trials, published ones first and then at random."""
    return [observed(candidate_of(space, number, published, seed), number) for number in range(count)]


def candidate_of(space: SearchSpace, number: int, published: Sequence[str], seed: int) -> Candidate:
    """Suggest a published method, or a random candidate after the last of them."""
    draw = RandomTrial(1000 * seed + number)
    return space.suggest_published(published[number], draw) if number < len(published) else space.suggest(draw)


def proposed(search: FactoredSearch, history: list[Observation], slots: int = 1) -> list[Candidate]:
    """Propose the next trials, each as if those before it were running."""
    trials, found = list(history), []
    for _ in range(slots):
        candidate = search.candidate(trials, number=len(trials))
        if candidate is None:
            break
        found.append(candidate)
        trials.append(Observation.of(candidate, number=len(trials), state=TrialState.RUNNING))
    return found


def searched(search: FactoredSearch, trials: list[Observation], count: int) -> list[Observation]:
    """Return the trials that follow these, one after another."""
    found = list(trials)
    for _ in range(count):
        (candidate,) = proposed(search, found)
        found.append(observed(candidate, len(found)))
    return found[len(trials) :]
