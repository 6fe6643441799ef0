"""What a study says of itself in a sentence."""

from dataclasses import replace

import pytest

from studies.queries.ranking import Ranking, ranking_of
from studies.queries.verdict import verdict
from studies.store.ledger import Ledger
from studies.store.records import TrialState

COLLAPSED = "rung 0 (25 steps): collapsed: its training loss has risen from 1.7 to 1.9"


@pytest.fixture
def ranking(sample_storage: str) -> Ranking:
    with Ledger.open(sample_storage, read_only=True) as ledger:
        return ranking_of(ledger, ledger.study("sample"))


def complete(ranking: Ranking, *scores: float) -> Ranking:
    """Published and discovered trials with some scores."""
    first = [trial for trial in ranking.trials if trial.state is TrialState.COMPLETE]
    trials = [replace(first[n % 2], number=n, score=score) for n, score in enumerate(scores)]
    return replace(ranking, trials=tuple(trials))


def test_trials_that_all_have_one_score_have_learned_nothing(ranking: Ranking) -> None:
    assert verdict(complete(ranking, 0.5092, 0.5092, 0.5092), "accuracy") == (
        "Nothing was learned: all 3 trials that ran to the end have the same accuracy, 0.5092, as constant predictions "
        "have."
    )


@pytest.mark.parametrize("scores", [(0.5092, 0.5092), (0.5092, 0.5092, 0.5093)])
def test_two_of_one_score_may_be_chance_and_one_that_differs_has_learned(
    ranking: Ranking, scores: tuple[float, ...]
) -> None:
    assert "learned" not in verdict(complete(ranking, *scores), "accuracy")


def test_trials_that_collapsed_are_counted(ranking: Ranking) -> None:
    said = verdict(ranking, "accuracy")
    assert "collapsed" not in said
    trials = tuple(replace(one, reason=COLLAPSED if one.reason else None) for one in ranking.trials)
    pruned = sum(one.reason is not None for one in trials)
    assert verdict(replace(ranking, trials=trials), "accuracy") == f"{said} {pruned} of {len(trials)} trials collapsed."
