"""The benchmark of the search: its truths are what they say, figures are closed forms, good is told from bad."""

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from optuna.samplers import RandomSampler
from scipy.stats import spearmanr
from support.simulated_search import whole_space

from search_space.space.random_draw import RandomTrial
from search_space.space.space import Candidate, SearchSpace
from studies.search.factored.genome import Genome
from studies.search.factored.observation import Observation
from studies.search.samplers import Sampler
from studies.store.records import TrialState

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the arms, which are found beside the benchmark."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"search_arms.{name}")

    return load


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return whole_space()


def setting_of(arms: Any, space: SearchSpace, **fields: Any) -> Any:
    given = {"trials": 40, "noise": 2.2, "ruggedness": 0.4, "checkpoints": (25, 40), **fields}
    return arms("simulation").Setting(space=space, **given)


class Foresight(RandomSampler):
    """Proposes the truly best of 48 draws."""

    def __init__(self, space: SearchSpace, number: int, truth: Any) -> None:
        super().__init__(seed=number)
        trials = [RandomTrial(hash((number, draw))) for draw in range(48)]
        self._values = max((space.suggest(trial) for trial in trials), key=truth.score).parameters

    def sample_independent(self, study: Any, trial: Any, name: str, distribution: Any) -> Any:
        return self._values.get(name) or super().sample_independent(study, trial, name, distribution)


def foresight(truth: Any) -> Sampler:
    return Sampler(of=lambda space, *study: lambda number, retry: Foresight(space, number, truth))


def test_a_study_that_knows_the_truth_beats_one_that_draws(arms: Any, space: SearchSpace) -> None:
    """With little noise what is recommended is about the best of 30 proposals: each the best of 48 draws, or a draw."""
    simulation = arms("simulation")
    random = arms("arms").ARMS["random uniform"]
    oracle = replace(random, name="oracle", sampler=foresight)
    setting = setting_of(arms, space, noise=0.2)
    known, drawn = ([simulation.simulated(arm, setting, seed) for seed in range(5)] for arm in (oracle, random))
    gains = arms("tables").gain
    assert sum(gains(one, 1) for one in known) > sum(gains(one, 1) for one in drawn) + 3
    assert all(one.above_median > 0.95 for one in known)
    assert all(one.above_median < 0.9 for one in drawn)


def test_nothing_is_found_where_there_is_nothing(
    arms: Any, space: SearchSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulation, statistics = arms("simulation"), arms("statistics")
    monkeypatch.setattr(arms("truth").PlantedTruth, "score", lambda self, candidate: 45.0)
    monkeypatch.setattr(arms("truth").PlantedTruth, "best_published", lambda self: 45.0)
    arm = arms("arms").ARMS["random uniform"]
    studies = [simulation.simulated(arm, setting_of(arms, space), seed) for seed in range(4)]
    assert [arms("tables").gain(one, 1) for one in studies] == [0.0] * 4
    assert statistics.share([one.recommended[1].truth > one.tried + 0.5 for one in studies]).value == 0
    assert [one.found_trial for one in studies] == [None] * 4
    # the score that is best of many is luck all the same
    assert all(one.recommended[1].score > 46 for one in studies)


def test_arms_are_given_the_same_tasks_and_a_study_is_the_same_twice(arms: Any, space: SearchSpace) -> None:
    simulation, known = arms("simulation"), arms("arms").ARMS
    setting = setting_of(arms, space, trials=14, checkpoints=(14,))
    one, other = (simulation.simulated(known[name], setting, 3) for name in ("random uniform", "tpe"))
    again = simulation.simulated(known["random uniform"], setting, 3)
    assert replace(one, seconds=0.0) == replace(again, seconds=0.0)
    assert one.tuned == other.tuned


def test_every_arm_runs(arms: Any, space: SearchSpace) -> None:
    setting = setting_of(arms, space, trials=23, checkpoints=(23,))
    for arm in arms("arms").ARMS.values():
        study = arms("simulation").simulated(arm, setting, 0)
        assert study.recommended[0].trials == 23
        assert 1 < study.recommended[0].cost <= 23
        assert 18.0 <= study.recommended[0].truth < 60.0


def drawn(space: SearchSpace, count: int) -> list[Candidate]:
    return [space.suggest(RandomTrial(seed)) for seed in range(count)]


def test_a_truth_is_the_task_s_alone(arms: Any, space: SearchSpace) -> None:
    truth = arms("truth")
    candidates = drawn(space, 40)
    one, same, other, rugged = (
        [made.score(candidate) for candidate in candidates]
        for made in (
            truth.PlantedTruth(space, 1),
            truth.PlantedTruth(space, 1),
            truth.PlantedTruth(space, 2),
            truth.PlantedTruth(space, 1, ruggedness=1.5),
        )
    )
    assert one == same
    assert sum(a == b for a, b in zip(one, other, strict=True)) < 10  # the collapsed ones
    assert max(abs(a - b) for a, b in zip(one, rugged, strict=True)) > 1


def test_expected_gains_are_the_means_over_tasks(arms: Any, space: SearchSpace) -> None:
    truth, genome = arms("truth"), Genome(space)
    configurations = drawn(space, 40)
    views = [genome.view_of(Observation.of(one, number=0, state=TrialState.RUNNING)) for one in configurations]
    expected = np.array([truth.expected_gain(view) for view in views])
    gains = np.array(
        [
            [planted.tuned(one.configuration) - truth.HEAD_ALONE for one in configurations]
            for planted in (truth.PlantedTruth(space, seed) for seed in range(150))
        ]
    )
    # a mean has a standard error of about 0.13, and is a little lower: sides are saturated task by task
    assert np.abs(gains.mean(axis=0) - expected).max() < 0.35
    assert np.abs(gains[0] - expected).max() > 2


def test_a_rate_costs_a_quadratic_and_collapses_beyond_its_edge(arms: Any, space: SearchSpace) -> None:
    truth = arms("truth")
    task = truth.PlantedTruth(space, 4)
    rates = task.rates("lowrank")
    assert rates.cost(rates.best) == 0
    assert rates.cost(rates.best + 0.5) == pytest.approx(0.75)
    lora = space.suggest_published("lora_qv", RandomTrial(0))
    low, high = space.rate_range(lora.configuration.attention)

    def score_at(z: float) -> float:
        rate = low * (high / low) ** ((z + 1) / 2)
        return task.score(replace(lora, attention_learning_rate=rate))

    assert score_at(rates.best) == pytest.approx(task.tuned(lora.configuration))
    assert score_at(rates.best) > score_at(rates.best + 0.2) > score_at(rates.best - 0.4)
    assert score_at(rates.edge + 0.01) == truth.COLLAPSED


def test_about_one_draw_in_a_hundred_collapses(arms: Any, space: SearchSpace) -> None:
    truth, candidates = arms("truth"), drawn(space, 400)
    shares = [
        sum(truth.PlantedTruth(space, seed).score(one) == truth.COLLAPSED for one in candidates) / 400
        for seed in range(10)
    ]
    assert 0.003 < sum(shares) / 10 < 0.03


def test_readings_foretell_the_end_as_well_as_was_measured(arms: Any, space: SearchSpace) -> None:
    """Docstrings: .39, .52, .67 for the accuracy at an eighth, a quarter and a half, .43, .56, .78 for the loss."""
    candidates = drawn(space, 190)
    found: dict[tuple[str, int], float] = {}
    for seed in range(10):
        task = arms("truth").PlantedTruth(space, seed)
        measure = arms("readings").Measurements(seed, noise=2.2, steps=200)
        truths = [(number, one.fingerprint, task.score(one)) for number, one in enumerate(candidates)]
        ends = [measure.read(*trial, 200).score for trial in truths]
        for step in (25, 50, 100):
            readings = [measure.read(*trial, step) for trial in truths]
            for name, sign in (("score", 1), ("loss", -1)):
                values = [sign * getattr(one, name) for one in readings]
                found[name, step] = found.get((name, step), 0.0) + float(spearmanr(values, ends).statistic) / 10
    measured = {
        ("score", 25): 0.39,
        ("score", 50): 0.52,
        ("score", 100): 0.67,
        ("loss", 25): 0.43,
        ("loss", 50): 0.56,
        ("loss", 100): 0.78,
    }
    assert found == {key: pytest.approx(value, abs=0.1) for key, value in measured.items()}
    assert found["loss", 50] > found["score", 50]
    assert found["loss", 100] > found["score", 100]


def test_losses_at_the_end_tell_as_much_more_than_scores_as_was_measured(arms: Any) -> None:
    """Halves of the examples: .53 to .66 between accuracies, .61 to .74 between a loss and the other's accuracy."""
    spread, noise = 2.05, 1.67  # of trials on docstrings, and of an accuracy of half of its examples between trials
    readings = arms("readings")
    one, other = (readings.Measurements(seed, noise=noise, steps=200) for seed in (0, 1))
    truths = [(str(trial), arms("truth").drawn("trial", trial, mean=48.0, spread=spread)) for trial in range(6000)]
    first = [one.read(0, name, truth, 200) for name, truth in truths]
    second = [other.read(0, name, truth, 200).score for name, truth in truths]
    found = [
        float(np.corrcoef(values, second)[0, 1])
        for values in ([reading.score for reading in first], [-reading.loss for reading in first])
    ]
    assert found == pytest.approx([0.60, 0.68], abs=0.03)


def test_examples_have_the_loss_of_the_reading_and_differ_by_its_noise(arms: Any) -> None:
    """The paired error of two trials at one truth is the deviation of their losses' difference, over many pairs."""
    readings = arms("readings")
    measure = readings.Measurements(0, noise=2.2, steps=200)
    known = [measure.read(0, str(trial), 50.0, 50) for trial in range(400)]
    losses = [-measure.losses(one, str(trial)).negated_losses for trial, one in enumerate(known)]
    assert [float(one.mean()) for one in losses] == pytest.approx([one.loss for one in known], abs=2e-4)
    errors = [(one - next_).std(ddof=1) / 517**0.5 for one, next_ in zip(losses[::2], losses[1::2], strict=True)]
    noise = abs(readings._LOSS_PER_POINT) * readings._LOSS_NOISE * 2.2
    assert sum(errors) / 200 == pytest.approx(noise * 2**0.5, rel=0.02)
    # what is the same for all trials is gone from a difference
    assert float(losses[0].std()) > 10 * noise


def test_the_noise_is_that_of_as_many_examples(arms: Any) -> None:
    measure = arms("readings").Measurements(0, noise=2.2, steps=200)
    assert measure.examples == 517  # 100 sqrt(0.25 / 517) = 2.2
    scores = [100 * measure.read(0, str(trial), 50.0, 200).score for trial in range(4000)]
    mean = sum(scores) / 4000
    deviation = (sum((one - mean) ** 2 for one in scores) / 4000) ** 0.5
    assert mean == pytest.approx(50.0, abs=5 * 2.2 / 4000**0.5)
    assert deviation == pytest.approx(2.2, rel=5 / 8000**0.5)


def test_intervals_and_times_are_closed_forms(arms: Any) -> None:
    statistics = arms("statistics")
    none = statistics.share([False] * 10)
    assert (none.value, none.low, none.high) == pytest.approx((0.0, 0.0, 1.96**2 / (10 + 1.96**2)), abs=1e-3)
    half = statistics.share([True, False] * 50)
    assert (half.low, half.high) == pytest.approx((0.4038, 0.5962), abs=1e-4)
    assert statistics.median_time([3, 1, None, 2], 10) == 2
    assert statistics.median_time([3, None, None, 2], 10) == 3
    assert statistics.median_time([3, None, None, None], 10) is None
    mean = statistics.mean([1.0, 3.0])
    assert (mean.value, mean.high - mean.value) == pytest.approx((2.0, 1.96), abs=1e-3)


def test_the_table_compares_seed_by_seed(arms: Any) -> None:
    simulation = arms("simulation")

    def study(arm: str, seed: int, truth: float) -> Any:
        one = simulation.Recommended(trials=12, cost=6.0, truth=truth, score=truth + 1.5)
        return simulation.Study(
            arm=arm,
            seed=seed,
            tuned=46.0,
            tried=45.0,
            recommended=(one,),
            found_trial=4 + seed,
            late_proposals=None,
            above_median=0.5,
            collapsed=0.1,
            seconds=0.002,
        )

    first = [study("first", seed, 44.0 + 2 * seed) for seed in range(2)]
    second = [study("second", seed, 45.5 + 2 * seed) for seed in range(2)]
    lines = list(arms("tables").table_lines({"first": first, "second": second}))
    figures = arms("figures").arm_figures
    cells = [line.split() for line in lines]
    assert ["first", "+0.00", "±", "1.96", "6"] in cells
    assert ["second", "+1.50", "±", "1.96", "6"] in cells
    assert ["second", "+1.50", "±", "0.00"] in cells
    assert ["second", "0.50", "[0.09,", "0.91]"] in cells
    assert ["first", "4", "+1.50", "-", "50%", "10.0%", "2.0"] in cells
    drawn = {one.name: [dict(trace) for trace in one.data] for one in figures({"first": first, "second": second})}
    assert [trace["y"] for trace in drawn["search-gains"]] == [[0.0], [1.5]]
    assert [trace["x"] for trace in drawn["search-gains"]] == [[6.0], [6.0]]
    assert [trace["y"] for trace in drawn["search-chances"]] == [[0.5], [0.5]]
    assert [trace["y"] for trace in drawn["search-optimism"]] == [[1.5], [1.5]]
    # one study has found something after 4 trials and the other after 5
    assert [(trace["x"], trace["y"]) for trace in drawn["search-found"]] == [([0, 4, 5, 12], [0.0, 0.5, 1.0, 1.0])] * 2
    assert drawn["search-proposals"][0]["x"] == [50.0, 50.0]


def test_a_wider_margin_lets_more_through_and_spends_more(arms: Any, space: SearchSpace) -> None:
    pruning, plan = arms("pruning"), arms("arms").SIGNIFICANT
    tasks = [pruning.drawn_task(setting_of(arms, space, trials=50), seed) for seed in range(3)]
    better = sum(one.method is None and one.truth > task.best_published for task in tasks for one in task.trials)
    none, narrow, wide = (
        pruning.outcome(tasks, replace(plan, **fields), 2.2)
        for fields in ({"reduction": 1}, {"margin": 0.0}, {"margin": 1.64})
    )
    assert none.steps == 1.0
    assert none.survived == [True] * better
    assert narrow.steps < wide.steps - 0.1
    assert sum(narrow.survived) < sum(wide.survived) <= better
    # losses are sharper: as many go on for fewer steps
    paired = [
        pruning.outcome(tasks, replace(plan, paired_margin=margin), 2.2, has_losses=True) for margin in (0.7, 2.0)
    ]
    assert paired[0].steps < paired[1].steps < wide.steps
    assert sum(wide.survived) <= sum(paired[1].survived)
    # what nobody could do better is no worse than what lets as many through
    least = pruning.least_steps(tasks, plan.steps, 2.2)
    assert sum(least.survived) >= 0.9 * better
    assert least.steps < wide.steps
    assert pruning.least_steps(tasks, plan.steps, 2.2, has_losses=True).steps < least.steps


def test_thresholds_of_what_tells_all_stop_all_others_at_the_first_rung(arms: Any) -> None:
    foresight = arms("foresight")
    better = np.arange(40) < 10
    told = foresight.least_by(np.where(better, 1.0, 0.0)[:, None] * [1.0, 1.0], better, (50, 100))
    # 10 whole trials and 30 of a quarter
    assert (told.survive, told.steps) == (1.0, pytest.approx((10 + 30 / 4) / 40))
    untold = foresight.least_by(np.zeros((40, 2)), better, (50, 100))
    assert (untold.survive, untold.steps) == (1.0, 1.0)


def test_losses_are_blurred_as_is_said(arms: Any) -> None:
    readings = arms("readings")
    shares, truth, noise = (0.25, 0.375, 0.5, 1.0), 46.0, 2.2
    measurements = readings.Measurements(0, noise=noise, steps=200)
    points = [
        [readings.points_of_loss(measurements.read(0, f"trial {n}", truth, round(200 * x)).loss) for x in shares]
        for n in range(4000)
    ]
    left = np.array(points) - [readings.expected_points(truth, share) for share in shares]
    told = readings.blur_of_losses(shares, noise)
    # a covariance of 4,000 is off by sqrt((c11 c22 + c12^2) / 4000), and a binomial error is no more than said
    error = np.sqrt((np.outer(np.diag(told), np.diag(told)) + told**2) / len(left))
    assert (np.abs(np.cov(left.T) - told) < 4.5 * error + 0.02 * told).all()


def test_by_chance_more_is_stopped_the_more_is_asked_and_most_of_what_is_better_goes_on(
    arms: Any, space: SearchSpace
) -> None:
    pruning, plan = arms("pruning"), arms("arms").BY_CHANCE
    tasks = [pruning.drawn_task(setting_of(arms, space, trials=40), seed) for seed in range(2)]
    soon, late, never = (
        pruning.outcome(tasks, replace(plan, least_chance=least), 2.2, has_losses=True) for least in (0.3, 0.02, 0.0)
    )
    assert soon.steps < late.steps - 0.1 < never.steps == 1.0
    assert sum(soon.survived) <= sum(late.survived) <= sum(never.survived) == len(never.survived)
    assert sum(late.survived) >= 0.8 * len(late.survived)


def test_chances_by_a_trial_s_own_losses_are_what_comes_true(arms: Any, space: SearchSpace) -> None:
    foresight = arms("foresight")
    tasks = [arms("drawn").drawn_task(setting_of(arms, space, trials=50), seed) for seed in range(3)]
    rungs = (50, 75, 100)
    values, better = foresight.chances(tasks, rungs, 2.2)
    least = foresight.least_steps_by_chance(tasks, rungs, 2.2)
    assert sum(least.survived) >= 0.9 * better.sum() == 0.9 * len(least.survived)
    assert ((values >= 0) & (values <= 1 + 1e-12)).all()
    # in the mean, and more so the later
    spread = [float(np.sqrt((column * (1 - column)).mean() / len(column))) for column in values.T]
    assert all(abs(column.mean() - better.mean()) < 4 * error for column, error in zip(values.T, spread, strict=True))
    behind = [-float(np.log(np.where(better, column, 1 - column) + 1e-9).mean()) for column in values.T]
    assert behind == sorted(behind, reverse=True)


def test_times_are_of_every_sampler_after_every_number_of_trials(arms: Any, space: SearchSpace) -> None:
    lines = list(arms("timing").time_lines(space, (12, 20)))
    assert [line.split()[:2] for line in lines[1:-1]] == [
        [name, size] for name in arms("timing").SEARCHES for size in ("12", "20")
    ]


def test_the_benchmark_runs_and_continues_what_it_has(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    options = ["--arms", "random uniform,tpe", "--trials", "12", "--results", str(results)]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, BENCHMARKS / "search.py", *options, *more]
        return subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True, check=True)

    assert "tasks: random uniform 2, tpe 2" in run("--seeds", "2").stdout
    more = run("--seeds", "3", "--jobs", "2")
    assert more.stderr.splitlines() == ["seed 2: random uniform", "seed 2: tpe"]
    entries: list[Mapping[str, Any]] = [json.loads(line) for line in results.read_text().splitlines()]
    assert [entry["seed"] for entry in entries] == [0, 0, 1, 1, 2, 2]
    for words in ("after trials", "as tried", "rates tuned", "found at trial"):
        assert words in more.stdout


def test_an_arm_that_is_not_there_is_refused_in_a_line(
    arms: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arms("arms")
    with pytest.raises(SystemExit, match="2"):
        importlib.import_module("search").arguments_of(["--arms", "luck"])
    assert "must be among random uniform" in capsys.readouterr().err.splitlines()[-1]


def test_tasks_of_a_family_are_alike_and_an_opposite_one_is_the_other_way_round(arms: Any, space: SearchSpace) -> None:
    transfer = arms("transfer")
    candidates = drawn(space, 150)

    def scores(seed: int, family: int, *, is_opposite: bool = False) -> list[float]:
        truth = transfer.RelatedTruth(space, seed, family=family, is_opposite=is_opposite)
        return [truth.tuned(one.configuration) for one in candidates]

    pairs = [(scores(100 * family, family), family) for family in range(4)]
    alike = [spearmanr(one, scores(100 * family + 1, family)).statistic for one, family in pairs]
    strange = [spearmanr(one, scores(100 * family + 901, family + 9)).statistic for one, family in pairs]
    opposite = [spearmanr(one, scores(100 * family + 1, family, is_opposite=True)).statistic for one, family in pairs]
    assert sum(alike) / 4 > 0.5
    assert sum(alike) > sum(strange) + 0.4
    assert sum(opposite) < sum(strange) - 0.3


def test_what_a_family_is_worth_is_told_by_task(arms: Any, space: SearchSpace) -> None:
    transfer = arms("transfer")
    setting = setting_of(arms, space, trials=14, checkpoints=(14,))
    found = transfer.transfers(setting, 0)
    assert [(one.task, one.learned_from) for one in found[:6]] == [
        *((task, "none") for task in range(4)),
        (0, "family"),
        (0, "opposite"),
    ]
    assert len(found) == 4 * 4
    assert all(one.starts >= 1 for one in found[4:])
    assert all(40 < one.truths[0] < 60 for one in found)
    lines = list(transfer.table_of(found, (14,)))
    gains = [one.truths[0] - found[one.task].truths[0] for one in found if one.learned_from == "family"]
    assert f"{sum(gains) / 4:+.2f}" in lines[2]


def test_a_study_of_two_objectives_without_rungs_spends_all_its_steps(arms: Any, space: SearchSpace) -> None:
    module = arms("fronts")
    setting = setting_of(arms, module.with_sizes(space), trials=20)
    unpruned, pruned = (module.found(setting, (arm, 0)) for arm in ("unpruned", "by chance"))
    assert unpruned.steps == 1
    assert unpruned.hypervolume > 0
    assert len(unpruned.earlier) == 10
    assert unpruned.earlier[-1] == (unpruned.hypervolume, 1)
    assert 0 < pruned.steps <= 1
    lines = list(module.table_lines(setting, {"unpruned": [unpruned], "by chance": [pruned]}))
    assert lines[0] == "1 tasks, 20 trials, 2.2 points of noise"
    assert "100.0% ± 0.0%" in lines[4]


def test_the_best_there_is_is_no_less_than_what_is_known_and_nothing_is_where_nothing_was_planted(
    arms: Any, space: SearchSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    headroom, truth = arms("headroom"), arms("truth")
    setting = setting_of(arms, space)
    few, more = (headroom.headroom(setting, 1, draws=30, rounds=rounds) for rounds in (0, 4))
    assert few.best == max(few.draws)
    assert few.draws == more.draws
    planted = truth.PlantedTruth(space, 1)
    tried = max(planted.published_as_tried(arms("simulation").OPENING))
    assert more.tuned == planted.best_published() - tried > 0
    assert more.best > max(more.tuned, few.best) + 0.5
    assert more == headroom.headroom(setting, 1, draws=30, rounds=4)
    lines = list(headroom.headroom_lines(setting, [1], lambda work, seeds: [more for _ in seeds]))
    assert f"{more.best:+.2f}" in lines[2]
    monkeypatch.setattr(truth.PlantedTruth, "at", lambda *_: 41.0)
    nothing = headroom.headroom(setting, 1, draws=10, rounds=1)
    assert (nothing.tuned, nothing.best, set(nothing.draws)) == (0.0, 0.0, {0.0})
