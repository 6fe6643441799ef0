"""Differences to a published method, and sizes, as cards with intervals."""

import sys
from statistics import NormalDist

import numpy as np
import pytest
from support.factored_search import drawn, history_of

from search_space.published.point import PublishedPoint
from search_space.space.space import SearchSpace
from studies.analysis.discover import discovered, summary
from studies.analysis.discover.differences import differences
from studies.analysis.discover.sizes import sizes
from studies.analysis.discover.study_posterior import StudyPosterior
from studies.history.history import StudyHistory
from studies.records import TrialState


@pytest.fixture(scope="module")
def history(space: SearchSpace) -> StudyHistory:
    return history_of(drawn(space, 40))


@pytest.fixture(scope="module")
def knowledge(space: SearchSpace, history: StudyHistory) -> StudyPosterior:
    return StudyPosterior(space, history, metric="accuracy")


def test_gains_of_differences_sum_to_the_lead_of_the_winner(knowledge):
    card = differences(knowledge)
    winner = knowledge.winner
    method = knowledge.best_of([one for one in knowledge.complete if one.method is not None])
    means = knowledge.means([winner, method])
    assert card.data["gain"].sum() == pytest.approx(means[0] - means[1], abs=1e-9)
    assert card.data["reached"].iloc[-1] == pytest.approx(means[0], abs=1e-9)
    assert card.data["step"].tolist() == list(range(1, len(card.data) + 1))
    assert f"trial {winner.number}" in card.question
    clear = ((card.data["low"] > 0) | (card.data["high"] < 0)).any()
    assert ("these are shown to matter" in card.sentences[1]) == clear
    assert ("is shown to matter yet" in card.sentences[1]) != clear


def test_trials_are_compared_by_the_estimates_of_the_leaderboard(space, history):
    def posterior(views):
        sides = [[side for side in view if side] for view in views]
        means = np.array([sum(side.log2_budget_fraction for side in each) for each in sides])
        return means, 1e-8 * np.eye(len(means))

    posterior_of_board = StudyPosterior(space, history, metric="accuracy", leaderboard_joint=posterior)
    best = posterior_of_board.best_of(posterior_of_board.complete)
    (mean,) = posterior_of_board.expected([best])[0]
    assert mean == max(posterior_of_board.expected(posterior_of_board.complete)[0])
    assert differences(posterior_of_board).data["reached"].iloc[-1] == pytest.approx(mean)
    by_trial = sizes(posterior_of_board).points.set_index("trial")["estimate"]
    assert by_trial[best.number] == pytest.approx(mean)


def test_winner_comparison_equals_the_verdicts(knowledge):
    published = [one for one in knowledge.complete if one.method is not None]
    best = knowledge.best_of(published)
    assert len({one.method for one in published}) > 1
    (usual,) = discovered(knowledge, ["winner"])
    assert f"and {best.method}," in usual.question
    sentence = summary(knowledge, [])[0]
    assert f"{best.method} (trial {best.number})" in sentence
    means, covariance = knowledge.expected([knowledge.winner, best])
    reach = 1.96 * (covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]) ** 0.5
    assert f"{means[0] - means[1]:+.4f} ± {reach:.4f}" in usual.sentences[0]
    assert usual.sentences[0].split(": ")[1].split(" acc")[0].lstrip("+") in sentence


def test_where_the_method_is_the_winner_the_best_discovery_is_compared(space, history):
    knowledge = StudyPosterior(space, history, best=1)
    answer = differences(knowledge)
    found = [one for one in knowledge.complete if one.method is None]
    best = found[int(np.argmax(knowledge.means(found)))]
    assert answer.question.startswith(f"What differs between the best discovery, trial {best.number}, and mam_adapter")
    assert not answer.data.empty
    pruned = history
    for one in history:
        pruned = pruned if one.method else pruned.changed(one.number, state=TrialState.PRUNED)
    alone = differences(StudyPosterior(space, pruned, best=1))
    assert alone.sentences == ("The winner, trial 1, is mam_adapter itself, and nothing was discovered.",)


def test_proposal_that_equals_a_method_is_no_discovery(space, history):
    own = StudyPosterior(space, history)
    best = own.best_of([one for one in own.complete if one.method is None])
    renamed = history.changed(best.number, description="LoRA r=1, query+value (lora_qv)")
    knowledge = StudyPosterior(space, renamed, best=best.number)
    sentence = summary(knowledge, [])[0]
    assert f"Trial {best.number}, the best discovery" in summary(own, [])[0]
    assert f"trial {best.number}, the best discovery" not in sentence.lower()
    assert f"lora_qv (trial {best.number}), the best published method" in sentence
    question = differences(knowledge).question
    assert question.startswith("What differs between the best discovery, trial ")
    assert f"trial {best.number}," not in question
    assert "and lora_qv," in question


def test_impossible_method_is_replaced_by_the_best_published_one(knowledge):
    answer = differences(knowledge, PublishedPoint("lora_qv:r=512"))
    assert "and lora_qv:r=512" not in answer.question
    assert any(f"and {name}," in answer.question for name in ("lora_qv", "mam_adapter"))


@pytest.mark.parametrize("lead", [0.0, 0.01, -0.02])
def test_probability_within_half_a_point_is_of_two_normals(space, history, lead):
    first, second = (one.number for one in history[:2])
    two = history
    for one in history[2:]:
        two = two.changed(one.number, state=TrialState.PRUNED)
    joint = np.array([0.5, 0.5 + lead]), 1e-4 * np.eye(2)
    by_trial = sizes(StudyPosterior(space, two, leaderboard_joint=lambda _: joint)).points.set_index("trial")["as_good"]
    normal, slack = NormalDist(0, 0.01 * 2**0.5), 0.005
    # 4,000 draws: four standard errors of a share are at most 0.032
    assert by_trial[first] == pytest.approx(normal.cdf(slack - lead), abs=0.032)
    assert by_trial[second] == pytest.approx(normal.cdf(slack + lead), abs=0.032)


def test_of_many_trials_the_best_and_the_front_are_compared(space, history, monkeypatch):
    whole = sizes(StudyPosterior(space, history))
    monkeypatch.setattr(sys.modules[sizes.__module__], "MOST", 5)
    some = sizes(StudyPosterior(space, history))
    best = whole.points.nlargest(5, "estimate")["trial"]
    assert set(some.points["trial"]) == {*whole.data["trial"], *best}
    assert len(some.points) < len(whole.points)
