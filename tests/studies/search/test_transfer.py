"""Warm starts from earlier studies: by closed forms, and from histories with planted scores."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.factored_search import ERROR, drawn, history_of, reading

from search_space.space.space import SearchSpace
from studies.records import TrialRecord
from studies.score_evidence import Estimate
from studies.search.transfer import BETWEEN_TASKS, UNKNOWN, SourceStudy, combine_optima, warm_start_from
from studies.search.warm_start import ExpectedRate, warm_start_from_json
from studies.surrogate.encoding import Encoding
from studies.surrogate.features import unit_lr_of
from studies.surrogate.prior_mean import BEST_UNIT_LR, prior_trends
from studies.surrogate.random_candidates import UNIFORM_FRACTION, RandomCandidates

LOW, HIGH = 1e-3, 1e-2
HALF = math.log(HIGH / LOW) / 2


def place_of(z: float) -> float:
    """Return the logarithm of the rate at a position between ``LOW`` and ``HIGH``."""
    return math.log(LOW) + (z + 1) * HALF


def test_optimum_of_many_tasks_has_the_deviation_between_tasks():
    found = combine_optima([(place_of(0.6), 0.0)] * 400, LOW, HIGH).place(LOW, HIGH)
    assert found.mean == pytest.approx(0.6, abs=0.01)
    assert found.deviation == pytest.approx(BETWEEN_TASKS, rel=0.01)


def test_an_expected_rate_is_placed_in_any_range_and_never_beyond_it():
    rate = ExpectedRate(rate=math.sqrt(LOW * HIGH), deviation=0.5)
    assert rate.place(LOW, HIGH).mean == pytest.approx(0.0, abs=1e-12)
    assert rate.place(LOW, HIGH).deviation == pytest.approx(0.5 / HALF)
    assert rate.place(LOW / 10, HIGH).mean == pytest.approx(0.5)
    assert rate.place(HIGH, 10 * HIGH).mean == -1.0
    assert rate.place(LOW, LOW) == Estimate(mean=0.0, deviation=1.0)
    for bad in ({"rate": 0.0, "deviation": 1.0}, {"rate": 1e-3, "deviation": math.nan}):
        with pytest.raises(ValueError, match="must be above 0"):
            ExpectedRate(**bad)


def scored(space: SearchSpace, score: Callable[[TrialRecord], float], *, count: int = 60, seed: int = 0) -> SourceStudy:
    """Return a study of random trials, all complete, with noiseless scores."""
    trials = []
    for one in drawn(space, count, seed=seed):
        trials.append(one.changed(readings=[reading(score(one.record))]))
    return SourceStudy(
        name=f"s{seed}",
        history=history_of(trials, ERROR / 10),
        features_of=Encoding(space).features_of,
        ranges=space.options.learning_rates,
    )


def low_rank(trial: TrialRecord) -> int:
    return sum(edit.form.name == "lowrank" for edit in trial.configuration.edits)


def test_best_configurations_of_a_task_come_first_on_the_next(space):
    source = scored(space, lambda trial: 0.4 + 0.05 * min(low_rank(trial), 2))
    warm_start = warm_start_from([source], space, replaceable=("lora_qv", "mam_adapter", "head_only", "bitfit"))
    assert warm_start.sources == ("s0",)
    (start,) = warm_start.starts
    best = space.suggest(start.proposal)
    tried = next(one for one in source.ranked if one.number == start.trial)
    assert low_rank(tried) >= 2
    assert best.configuration == tried.configuration
    assert (best.attention_learning_rate, best.ffn_learning_rate) == pytest.approx(
        (tried.attention_learning_rate, tried.ffn_learning_rate)
    )
    # of the two that were tried the one without low rank is worse; the others are not known there
    assert warm_start.replaced == ("mam_adapter",)


def test_tasks_that_disagree_each_have_their_own(space):
    def bottlenecks(trial: TrialRecord) -> float:
        return 0.4 + 0.05 * sum(edit.form.name == "bottleneck" for edit in trial.configuration.edits)

    one = scored(space, lambda trial: 0.4 + 0.05 * min(low_rank(trial), 2))
    other = scored(space, bottlenecks, seed=1)
    warm_start = warm_start_from([one, other], space, replaceable=())
    assert warm_start.replaced == ()
    assert 2 <= len(warm_start.starts) <= 6
    forms = [
        {edit.form.name for edit in space.suggest(start.proposal).configuration.edits} for start in warm_start.starts
    ]
    assert any("lowrank" in some for some in forms)
    assert any("bottleneck" in some for some in forms)


@pytest.mark.parametrize("best", [0.5, -0.7])
def test_rates_are_expected_where_they_were_best(space, encoding, best):
    def score(trial: TrialRecord) -> float:
        return 0.5 - 0.05 * sum((side.unit_lr - best) ** 2 for side in encoding.features_of(trial) if side is not None)

    places = warm_start_from([scored(space, score, count=90)], space).expected_rates(space.options.learning_rates)
    for form in ("lowrank", "bottleneck", "softmax_memory"):
        prior, measured = UNKNOWN**-2, BETWEEN_TASKS**-2
        most = (prior * BEST_UNIT_LR + measured * best) / (prior + measured)  # if the task told it exactly
        assert abs(places[form].mean - most) < 0.2
        assert abs(places[form].mean - best) < abs(BEST_UNIT_LR - best)
        assert BETWEEN_TASKS < places[form].deviation < math.hypot(UNKNOWN, BETWEEN_TASKS)


def test_warm_start_survives_json(space):
    import json
    from dataclasses import asdict

    warm_start = warm_start_from(
        [scored(space, lambda trial: 0.4 + 0.05 * low_rank(trial))], space, replaceable=("lora_qv",)
    )
    assert warm_start_from_json(json.loads(json.dumps(asdict(warm_start)))) == warm_start


def test_rates_are_drawn_near_the_optimum_and_sometimes_uniformly(encoding):
    draw = random.Random(0)
    random_candidates = RandomCandidates(encoding, {"lowrank": Estimate(mean=0.7, deviation=0.05)})
    sides = [side for _ in range(3000) for side in random_candidates.draw(draw).sides]
    by_form: dict[bool, list[float]] = {True: [], False: []}
    for side in sides:
        by_form[encoding.facts(side).form == "lowrank"].append(side.unit_lr)
    near = np.mean([abs(rate - 0.7) < 0.2 for rate in by_form[True]])
    expected = 1 - UNIFORM_FRACTION + UNIFORM_FRACTION * 0.4 / 2
    assert near == pytest.approx(expected, abs=5 * math.sqrt(expected * (1 - expected) / len(by_form[True])))
    assert abs(np.mean(by_form[False])) < 5 * math.sqrt(1 / 3 / len(by_form[False]))


def test_the_model_expects_most_of_rates_where_they_were_best(encoding, space):
    side, ffn = encoding.features_of(space.suggest_published("lora_qv", {"learning_rate.lowrank": 3e-3}))
    assert side is not None
    places = {"lowrank": Estimate(mean=0.4, deviation=0.1)}
    for rate in (-0.2, 0.4, 0.9):
        at = replace(side, unit_lr=rate), ffn
        assert prior_trends(at, places)[0] == pytest.approx(-((rate - 0.4) ** 2), abs=1e-12)
        assert prior_trends(at, {"bottleneck": places["lowrank"]})[0] == pytest.approx(
            -((rate - BEST_UNIT_LR) ** 2), abs=1e-12
        )
    low, high = space.options.learning_rates["lowrank"]
    assert side.unit_lr == pytest.approx(unit_lr_of(3e-3, low, high))
