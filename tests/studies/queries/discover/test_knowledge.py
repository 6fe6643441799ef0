"""What a study has taught: means and covariances as the posterior has them, and views that find what is planted."""

from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import drawn, whole_space

from studies.queries.discover import QUESTIONS, TITLES, WORDS, Knowledge, across, conclusion, discovered, rule_tree
from studies.queries.discover.answer import REACH
from studies.queries.discover.attention_share import Share
from studies.queries.discover.cells import FORMS, Best
from studies.queries.discover.contrasts import REST, Contrast, contrasts, pairs
from studies.queries.discover.importance import Importance
from studies.queries.discover.measure import side_of
from studies.queries.discover.pedanova import FEWEST
from studies.queries.discover.rates import Rate
from studies.queries.discover.rules import Rule
from studies.search.factored.observation import Observation

SPACE = whole_space()
TRIALS = 90


def precise(count: int, seed: int = 0) -> list[Observation]:
    """Trials that are measured with 4,000 examples."""
    return [
        replace(one, readings=tuple(replace(reading, standard_error=0.008) for reading in one.readings))
        for one in drawn(SPACE, count, seed=seed)
    ]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(SPACE, precise(TRIALS), metric="accuracy")


def test_an_effect_is_the_mean_over_pairs_with_what_is_left_of_drawing_them(knowledge: Knowledge) -> None:
    having, lacking = knowledge.measure.draws[:4], knowledge.measure.draws[4:8]
    effect = knowledge.effect(having, lacking)
    means, covariance = knowledge.joint([*having, *lacking])
    signs = np.array([0.25] * 4 + [-0.25] * 4)
    contrast = np.hstack([np.eye(4), -np.eye(4)])
    differences, spread = contrast @ means, contrast @ covariance @ contrast.T
    # the expected sample variance of normal differences, by brute force
    draws = np.random.default_rng(0).multivariate_normal(differences, spread, 200_000)
    variance = signs @ covariance @ signs + draws.var(axis=1, ddof=1).mean() / 4
    assert effect.mean == pytest.approx(signs @ means)
    assert effect.deviation**2 == pytest.approx(variance, rel=0.02)
    assert effect.high - effect.low == pytest.approx(2 * REACH * effect.deviation)


def test_averages_are_of_groups(knowledge: Knowledge) -> None:
    groups = [knowledge.measure.draws[:3], knowledge.measure.draws[3:5]]
    means, covariance = knowledge.averages(groups)
    every, joint = knowledge.joint([*groups[0], *groups[1]])
    assert means == pytest.approx([every[:3].mean(), every[3:].mean()])
    assert covariance[0, 1] == pytest.approx(joint[:3, 3:].mean())
    assert covariance[1, 1] == pytest.approx(joint[3:, 3:].mean())


def test_pairs_differ_in_what_is_compared_and_in_what_must_follow(knowledge: Knowledge) -> None:
    measure = knowledge.measure
    for contrast in contrasts(measure):
        if contrast.side == "sides" or contrast.other == REST:
            continue
        for having, lacking in zip(*(lambda some: (some.having, some.lacking))(pairs(measure, contrast)), strict=True):
            assert measure.value(having, contrast.side, contrast.dimension) == contrast.value
            assert measure.value(lacking, contrast.side, contrast.dimension) == contrast.other
            other = "ffn" if contrast.side == "attention" else "attention"
            assert side_of(having, other) == side_of(lacking, other)
            same = {"form", "gate", "insertion"} - {contrast.dimension}
            for dimension in same:
                ours, theirs = (measure.value(one, contrast.side, dimension) for one in (having, lacking))
                assert ours == theirs


def test_every_view_has_a_title_and_a_word_that_asks_it(knowledge: Knowledge) -> None:
    assert list(TITLES) == list(WORDS.values()) == list(QUESTIONS)
    assert len({*TITLES.values()}) == len(TITLES)
    assert discovered(knowledge, ["rules"]) == discovered(knowledge, ["V8"])


def test_a_form_that_is_planted_to_be_good_is_found_and_quoted(knowledge: Knowledge) -> None:
    """Low-rank maps are worth 3 points at either side, and nothing else but the rates is worth anything."""
    (answer,) = discovered(knowledge, ["V8"])
    rows = [row for row in answer.rows if isinstance(row, Rule)]
    forms = [row for row in rows if row.dimension == "form" and "lowrank" in (row.better, row.worse)]
    for row in forms:
        assert (row.value > 0) == (row.better == "lowrank")
    assert all(row.value > 0 for row in rows if row.is_resolved and row.worse != REST)
    assert sum(row.is_resolved for row in forms) >= 3
    others = [row for row in rows if row.dimension in ("insertion", "gate", "heads", "activation", "scale")]
    assert sum(row.is_resolved for row in others) <= 2
    assert any(said.startswith("At attention, a low-rank map instead of a bottleneck is") for said in answer.sentences)
    found, mattered, rule = conclusion(knowledge)
    assert "trial" in found
    assert "accounts for" in mattered
    assert rule == answer.sentences[0]


def test_every_view_has_findings_with_intervals_in_order(knowledge: Knowledge) -> None:
    answers = discovered(knowledge)
    assert [answer.view for answer in answers] == [*QUESTIONS]
    for answer in answers:
        assert answer.sentences
        assert all(row.low <= row.value <= row.high for row in answer.rows)
        assert len(answer.table()) == len(answer.rows)


def test_importance_ranks_forms_and_rates_above_what_does_nothing(knowledge: Knowledge) -> None:
    (answer,) = discovered(knowledge, ["V1"])
    rows = {(row.side, row.dimension): row for row in answer.rows if isinstance(row, Importance)}
    assert all(row.pedanova is None for row in rows.values())
    for side in ("attention", "ffn"):
        for nothing in ("insertion", "activation", "scale"):
            assert min(rows[side, "form"].value, rows[side, "rate"].value) > 2 * rows[side, nothing].value
    assert rows["ffn", "form"].is_resolved
    assert not rows["attention", "activation"].is_resolved


def test_cells_count_their_trials_and_say_which_are_empty(knowledge: Knowledge) -> None:
    (answer,) = discovered(knowledge, ["V3"])
    rows = [row for row in answer.rows if isinstance(row, Best) and row.table == FORMS]
    assert sum(row.n for row in rows) <= TRIALS
    assert (rows[0].row, rows[0].column) == ("lowrank", "lowrank")
    assert rows[0].gap == 0
    assert all(row.is_empty == (row.n == 0) for row in rows)
    assert any(row.is_empty for row in rows)


def test_curves_have_one_best_and_rates_one_near_what_is_planted(knowledge: Knowledge) -> None:
    shares, rates = discovered(knowledge, ["V6", "V7"])
    best = [row for row in rates.rows if isinstance(row, Rate) and row.is_best and row.n > 8]
    assert best
    for row in best:
        assert 4e-3 / 3 < row.rate < 4e-3 * 3  # the optimum of the formula is 4e-3
    curves = {(row.attention, row.ffn, row.budget) for row in shares.rows if isinstance(row, Share)}
    assert sum(row.is_best for row in shares.rows if isinstance(row, Share)) == len(curves) == 9


def test_a_tree_says_how_much_it_explains(knowledge: Knowledge) -> None:
    tree = rule_tree(knowledge)
    assert sum(leaf.share for leaf in tree.leaves) == pytest.approx(1.0)
    assert any("low-rank" in condition for condition in tree.leaves[0].conditions)
    assert 0.2 < tree.fidelity < 1


def test_the_same_history_is_answered_the_same_and_other_seeds_draw_others(knowledge: Knowledge) -> None:
    again, other = (Knowledge(SPACE, knowledge.history, metric="accuracy", seed=seed) for seed in (0, 1))
    assert discovered(again, ["V6"]) == discovered(knowledge, ["V6"])
    assert again.measure.draws == knowledge.measure.draws != other.measure.draws


def test_studies_are_pooled_rule_by_rule(knowledge: Knowledge) -> None:
    other = Knowledge(SPACE, drawn(SPACE, 30, seed=1), metric="accuracy")
    answer = across({"one": knowledge, "two": other})
    contrast = Contrast("ffn", "insertion", "parallel", "sequential")
    assert contrast in contrasts(knowledge.measure)
    assert {row.n for row in answer.rows} == {2}
    assert any(row.sentence.startswith("At the FFN, parallel instead of sequential") for row in answer.rows)


@pytest.mark.slow
def test_optunas_importances_stand_beside_ours_from_a_hundred_complete_trials_on() -> None:
    history = drawn(SPACE, 160)
    known = Knowledge(SPACE, history)
    assert len(known.complete) >= FEWEST
    (answer,) = discovered(known, ["V1"])
    found = [row.pedanova for row in answer.rows if isinstance(row, Importance) and row.pedanova is not None]
    assert len(found) > 10
    assert sum(found) <= 1 + 1e-9
