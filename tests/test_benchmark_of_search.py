"""The benchmark of the search: its truths are what they say, and what it counts are closed forms."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr
from support.simulated_search import whole_space

from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


def recommended(load: Any, space: SearchSpace, trials: int, **task: Any) -> Any:
    """Return the recommendation of a study of uniform draws on a planted truth."""
    simulation = load("search_arms.simulation")
    search = simulation.SearchPlan(sampler="random", space=space)
    planted = simulation.PlantedTask(space=space, noise=2.2, **task)
    (end,) = simulation.simulate(search, planted, checkpoints=[trials]).recommended
    return end


def drawn(space: SearchSpace, count: int) -> list[Candidate]:
    return [space.suggest(RandomTrial(seed)) for seed in range(count)]


def test_a_rate_costs_a_quadratic_and_collapses_beyond_its_edge(load, space):
    truth = load("search_arms.truth")
    task = truth.PlantedTruth(space, 4)
    rates = task.rates("lowrank")
    assert rates.cost(rates.best) == 0
    assert rates.cost(rates.best + 0.5) == pytest.approx(0.75)
    lora = space.suggest_published("lora_qv", RandomTrial(0))
    low, high = space.peak_lr_range(lora.configuration.attention)

    def score_at(z: float) -> float:
        rate = low * (high / low) ** ((z + 1) / 2)
        return task.score(replace(lora, attention_learning_rate=rate))

    assert score_at(rates.best) == pytest.approx(task.tuned(lora.configuration))
    assert score_at(rates.best) > score_at(rates.best + 0.2) > score_at(rates.best - 0.4)
    assert score_at(rates.edge + 0.01) == truth.COLLAPSED


def test_readings_predict_final_scores_as_measured(load, space):
    """Test accuracies at an eighth, a quarter and a half (.39, .52, .67) and losses (.43, .56, .78) on docstrings."""
    candidates = drawn(space, 190)
    found: dict[tuple[str, int], float] = {}
    for seed in range(10):
        task = load("search_arms.truth").PlantedTruth(space, seed)
        measure = load("search_arms.readings").Measurements(seed, noise=2.2, steps=200)
        truths = [(number, one.fingerprint, task.score(one)) for number, one in enumerate(candidates)]
        ends = [measure.read(*trial, 200).score for trial in truths]
        for step in (25, 50, 100):
            readings = [measure.read(*trial, step) for trial in truths]
            for name, sign in (("score", 1), ("train_loss", -1)):
                values = [sign * getattr(one, name) for one in readings]
                found[name, step] = found.get((name, step), 0.0) + float(spearmanr(values, ends).statistic) / 10
    assert [found["score", step] for step in (25, 50, 100)] == pytest.approx([0.39, 0.52, 0.67], abs=0.1)
    assert [found["train_loss", step] for step in (25, 50, 100)] == pytest.approx([0.43, 0.56, 0.78], abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_intervals_of_estimates_cover_planted_scores(load, space, spread):
    found = [recommended(load, space, 40, seed=seed, spread=spread).of_all for seed in range(8)]
    assert 0.84 < sum(found) / len(found) < 0.99


@pytest.mark.slow
def test_intervals_cover_scores_below_the_knee(load, space, monkeypatch):
    """Test trials whose scores are four spreads below the median, most of them collapsed; nothing is pruned."""
    monkeypatch.setattr(load("search_arms.simulation"), "stop_reason", lambda *_: None)
    far = held = 0
    for seed, spread in product((0, 7, 8, 15), (0.0, 1.0, 3.0)):
        end = recommended(load, space, 40, seed=seed, spread=spread)
        far, held = far + end.far, held + end.far_held
    assert far >= 12
    assert held >= 0.65 * far


def test_interval_of_an_unlucky_published_method_holds_its_score(load, space):
    end = recommended(load, space, 12, seed=7)
    assert (end.far, end.far_held) == (1, 1)


@pytest.mark.slow
def test_flat_truths_have_no_discovery(load, space):
    for seed in range(4):
        end = recommended(load, space, 40, seed=seed, spread=1.0, is_flat=True)
        assert end.truth == 46.0
        assert not end.found


def test_samplers_are_compared_seed_by_seed(load):
    """Test means of -1 and 1, and of 0.5 and 2.5: a standard error of 1, and 12.71 by Student with one degree."""
    simulation = load("search_arms.simulation")

    def study(sampler: str, seed: int, truth: float) -> Any:
        one = simulation.Recommendation(trials=12, cost=6.0, truth=truth, estimate=truth + 1.5)
        return simulation.SimulatedStudy(
            sampler=sampler, seed=seed, tried=45.0, recommended=(one,), found_trial=4 + seed
        )

    first = [study("first", seed, 44.0 + 2 * seed) for seed in range(2)]
    second = [study("second", seed, 45.5 + 2 * seed) for seed in range(2)]
    _, *lines = load("search").table_lines({"first": first, "second": second})
    assert lines[0].split() == ["first", "12", "6.0", "+0.00", "±", "12.71", "0.50", "+1.50", "±", "0.00", "4"]
    second_line = [
        "second",
        "12",
        "6.0",
        "+1.50",
        "±",
        "12.71",
        "+1.50",
        "±",
        "0.00",
        "0.50",
        "+1.50",
        "±",
        "0.00",
        "4",
    ]
    assert lines[1].split() == second_line
