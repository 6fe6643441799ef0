"""TPE that computes nothing twice for a proposal proposes what Optuna's own does, to the last bit."""

import random
from functools import partial

import pytest
from optuna.samplers import TPESampler

from search_space.space.space import SearchSpace
from studies.objectives import SizeGoal, SizeMeasure
from studies.records import TrialState
from studies.search.proposer import Proposer
from studies.search.samplers import SAMPLERS, STARTUP_TRIALS, Sampler, seeded
from studies.surrogate.recorded_observations import ObservationModel

OWN = SAMPLERS["tpe"]
STOCK = Sampler(
    of=seeded(partial(TPESampler, multivariate=True, group=True, constant_liar=True, n_startup_trials=STARTUP_TRIALS)),
    startup=STARTUP_TRIALS,
    sees_published=False,
)
GOAL = SizeGoal.of(SizeMeasure.PARAMETERS, budget=600_000)


def proposals(space: SearchSpace, sampler: Sampler, goal: SizeGoal | None) -> list[dict[str, object]]:
    """Of a search with up to three open trials, whose ends and readings come in another order than they began."""
    proposer = Proposer(space, sampler=sampler, seed=3, model=ObservationModel(goal=goal))
    luck, found, running = random.Random(0), [], []
    for number in range(40):
        found.append(dict(proposer.propose().parameters))
        running.append(number)
        while len(running) > luck.randrange(4):
            one = running.pop(luck.randrange(len(running)))
            proposer.add_reading(one, 50, luck.random())
            state = luck.choice((TrialState.COMPLETE, TrialState.PRUNED, TrialState.PRUNED, TrialState.FAILED))
            is_whole = state is TrialState.COMPLETE
            size = luck.random() if is_whole and goal is not None else None
            proposer.end_trial(one, state, luck.random() if is_whole else None, size=size)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("goal", [None, GOAL], ids=["score", "score and size"])
def test_proposals_are_those_of_optuna(space, goal):
    assert proposals(space, OWN, goal) == proposals(space, STOCK, goal)
