"""Posterior of a study: means, covariances, and views that find planted effects."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import drawn, history_of, whole_space

from studies.analysis.discover import ANALYSES, StudyPosterior, discovered, summary

SPACE = whole_space()
TRIALS = 90


@pytest.fixture(scope="module")
def knowledge() -> StudyPosterior:
    return StudyPosterior(SPACE, history_of(drawn(SPACE, TRIALS), error=0.008), metric="accuracy")


def test_every_analysis_has_a_card_of_its_name(knowledge):
    cards = discovered(knowledge)
    assert [card.name for card in cards] == [*ANALYSES] == ["matters", "winner", "rates", "sizes"]
    for card in cards:
        assert card.sentences
        assert card.shown <= len(card.data)
        assert (card.data["low"] <= card.data["high"]).all()
        json.dumps(card.as_entries(), allow_nan=False)


def test_importance_ranks_forms_and_rates_above_inert_choices(knowledge):
    """Test that low-rank maps, worth 3 points at either side, and rates outrank all else, which is worth no points."""
    (card,) = discovered(knowledge, ["matters"])
    rows = card.data.set_index("choice")
    for side in ("attention", "the FFN"):
        for inert in ("insertion", "activation", "scale"):
            both = min(rows["share"][f"form at {side}"], rows["share"][f"learning rate at {side}"])
            assert both > 2 * rows["share"][f"{inert} at {side}"]
    assert rows["matters"]["form at the FFN"]
    assert not rows["matters"]["activation at attention"]
    assert card.data["share"].is_monotonic_decreasing
    assert set(card.data.query("matters")["choice"]) <= set(card.data["choice"].head(card.shown))
    first, second = card.data["choice"].head(2)
    assert card.sentences[0].startswith(f"{first[0].upper()}{first[1:]}, {second} and ")
    assert "form at the FFN" in card.sentences[0].partition("; shown to matter: ")[2]
    assert "Choices that hardly matter" in card.sentences[1]


def test_uninformative_trials_are_described_as_such():
    noise = np.random.default_rng(0)

    def noisy(reading):
        return replace(reading, score=0.5 + 0.02 * noise.standard_normal())

    trials = [one.changed(readings=list(map(noisy, one.readings))) for one in drawn(SPACE, 14)]
    posterior = StudyPosterior(SPACE, history_of(trials), metric="accuracy")
    cards = discovered(posterior)
    sentences = summary(posterior, cards)
    assert any("no single value is shown to be better yet." in one for one in sentences)
    assert 3 <= len(sentences) <= 5
    assert cards[0].shown == 3
    assert not cards[0].data["matters"].any()


def test_rates_have_one_best_near_the_planted_optimum(knowledge):
    (card,) = discovered(knowledge, ["rates"])
    best = card.data[card.data["trials"] > 8]["best_rate"]
    assert len(best) > 2
    assert ((best > 4e-3 / 3) & (best < 4e-3 * 3)).all()  # the optimum of the formula is 4e-3
    assert (card.data["from"] <= card.data["best_rate"]).all()
    assert (card.data["best_rate"] <= card.data["to"]).all()
    assert card.points.groupby(["at", "form"])["is_best"].sum().eq(1).all()


def test_the_same_history_is_answered_the_same_and_other_seeds_draw_others(knowledge):
    again, other = (StudyPosterior(SPACE, knowledge.history, metric="accuracy", seed=seed) for seed in (0, 1))
    assert discovered(again, ["rates"])[0].data.equals(discovered(knowledge, ["rates"])[0].data)
    assert again.measure.draws == knowledge.measure.draws != other.measure.draws
