"""Asynchronous successive halving: the rule, its ties, and that order of arrival is all it depends on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.best_share import BestShare

from studies.pruning.rungs import Protected, Rule, RungBoard, RungPlan
from studies.win_probability import WinProbability
from trial_runner.example_losses import ExampleLosses
from trial_runner.seeds import derived_seed


@dataclass(frozen=True)
class Score:
    trial: int
    step: int
    score: float
    train_loss: float = math.nan
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Contestant:
    method: str | None = None
    fingerprint: str = ""


def arrive(board: RungBoard, *scores: Score) -> list[str | None]:
    verdicts = []
    for score in scores:
        board.add(score)
        verdicts.append(board.verdict(score))
    return verdicts


def plan(rule: Rule | BestShare = Rule.SIGNIFICANCE, **given: object) -> RungPlan:
    return RungPlan(**{"steps": (25, 50), "reduction": 2, "rule": rule, **given})


def test_best_share_rule_keeps_top_half_and_gives_reason():
    assert arrive(RungBoard(plan(BestShare(), reduction=3)), Score(0, 25, 0.9), Score(1, 25, 0.1)) == [None, None]
    scores = [Score(trial, 50, score) for trial, score in enumerate((0.455, 0.412, 0.6, 0.55, 0.58))]
    verdicts = [None, "rung 1 (50 steps): 0.412 below the cut 0.455", None, None, None]
    assert arrive(RungBoard(plan(BestShare())), *scores) == verdicts


def significant(
    *others: float, own: float = 0.5, reduction: int = 2, examples: int | None = 100, protected: tuple[int, ...] = ()
) -> str | None:
    """Return the verdict on a trial that arrives after others, some of them protected published methods."""
    board = RungBoard(plan(reduction=reduction, protected=Protected.ALL, examples=examples))
    for trial, score in enumerate(others):
        board.add(Score(trial, 25, score), Contestant("mam_adapter" if trial in protected else None))
    return arrive(board, Score(len(others), 25, own))[0]


def test_a_trial_stops_where_others_are_better_by_more_than_their_noise():
    # of 100 examples: sqrt(.25 / 100 + .246 / 100) * 0.84 = 0.0592
    assert significant(0.56, 0.56, 0.56, 0.56) is not None
    assert significant(0.559, 0.559, 0.559, 0.559) is None


def test_significance_rule_counts_better_trials_in_its_reason():
    verdict = significant(0.9, 0.9, 0.9, 0.9, 0.4)
    assert verdict == "rung 0 (25 steps): 0.5, and 4 of 5 are better by more than their noise"
    # with its own there are 7, and ceil(7 / 2) is 4, ceil(7 / 3) is 3
    three_of_six = (0.9, 0.9, 0.9, 0.4, 0.4, 0.4)
    assert significant(*three_of_six) is None
    assert significant(*three_of_six, reduction=3) is not None
    assert significant(*[0.9] * 20, reduction=1) is None


def test_first_four_trials_of_a_rung_are_not_stopped():
    assert significant(0.9, 0.9, 0.9) is None
    assert significant(0.9, 0.9, 0.9, 0.9) is not None


def test_protected_trials_do_not_hold_the_rung_and_are_not_stopped():
    assert significant(0.9, 0.9, 0.9, 0.9, 0.4, protected=(0, 1, 2, 3)) is None
    all_protected = plan(protected=Protected.ALL, examples=100)
    guarded = RungBoard(all_protected)
    for trial in range(6):
        guarded.add(Score(trial, 25, 0.9))
    guarded.add(Score(6, 25, 0.1), Contestant("lora_qv"))
    assert guarded.verdict(Score(6, 25, 0.1)) is None


def test_without_a_number_of_examples_half_the_spread_is_noise():
    # spread 1.4826 * median(|x - 0.5|) = 0.74: noise 0.37, of a difference 0.524, times 0.84: 0.440
    scores = (-0.5, 0.0, 1.0, 1.5)
    assert significant(*scores, own=0.5, examples=None) is None
    assert significant(1.0, 1.01, 1.02, 1.03, 1.04, own=0.5, examples=None) is not None


def test_a_score_of_none_right_is_not_without_noise():
    # a difference of 1 in 100 examples
    assert significant(0.01, 0.01, 0.01, 0.01, own=0.0) is None


def test_the_three_best_published_methods_and_the_head_are_protected():
    rungs = RungBoard(plan(protected=Protected.BEST, examples=10_000))
    methods = ["head_only", "bitfit", "lora_qv", "lora_ffn", "mam_adapter", "prefix_tuning"]
    scores = [Score(trial, 25, score) for trial, score in enumerate([0.1, 0.2, 0.5, 0.6, 0.7, 0.3])]
    for score, method in zip(scores, methods, strict=True):
        rungs.add(score, Contestant(method))
    for trial in range(6, 12):
        rungs.add(Score(trial, 25, 0.9))
    stopped = [method for score, method in zip(scores, methods, strict=True) if rungs.verdict(score) is not None]
    assert stopped == ["bitfit", "prefix_tuning"]


@pytest.mark.parametrize("order", [1, -1])
def test_lower_loss_then_lot_decide_between_equal_published_methods(order):
    """Neither the number of a trial nor the order of arrival does."""
    losses = {"bitfit": 0.9, "lora_qv": 0.5, "lora_ffn": 0.8, "mam_adapter": math.nan, "prefix_tuning": 0.7}

    def protected(losses: Mapping[str, float], seed: int) -> set[str]:
        board, methods = RungBoard(plan(protected=Protected.BEST, seed=seed)), [*losses][::order]
        for trial, method in enumerate(methods):
            score = Score(trial, 25, 0.5, metrics={"validation_loss": losses[method]})
            board.add(score, Contestant(method, fingerprint=method))
        return {methods[trial] for trial in board.protected()}

    assert all(protected(losses, seed) == {"lora_qv", "prefix_tuning", "lora_ffn"} for seed in range(6))
    drawn = [protected(dict.fromkeys(losses, 0.5), seed) for seed in range(6)]
    lots = {seed: sorted(losses, key=lambda one: derived_seed(seed, f"tie {one}")) for seed in range(6)}
    assert drawn == [set(lots[seed][:3]) for seed in range(6)]
    assert len({frozenset(one) for one in drawn}) > 1


def test_verdicts_do_not_depend_on_the_order_in_which_a_ledger_is_read():
    best = plan(protected=Protected.BEST, examples=200)
    scores = [Score(trial, 25, (trial * 37 % 41) / 41) for trial in range(41)]
    named = ["head_only", "bitfit", "lora_qv", "lora_ffn", "mam_adapter"]
    methods = {trial: Contestant(method) for trial, method in enumerate(named)}
    grown, rebuilt = RungBoard(best), RungBoard(best)
    for board, arriving in ((grown, scores), (rebuilt, reversed(scores))):
        for score in arriving:
            board.add(score, methods.get(score.trial))
    verdicts = [grown.verdict(score) for score in scores]
    assert verdicts == [rebuilt.verdict(score) for score in scores]
    assert 5 < sum(verdict is not None for verdict in verdicts) < 36


def measured(right: int, *, examples: int = 400, first: int = 0) -> ExampleLosses:
    """Return losses with this many correct examples in a row.

    Of two trials that begin at the same example, the correct ones of one contain those of the other.
    """
    is_right = (np.arange(examples) >= first) & (np.arange(examples) < first + right)
    return ExampleLosses.of(1.0 - is_right, is_right)


def compared(*, is_paired: bool, right_of_the_last: int = 200, first: int = 0) -> str | None:
    """Return the verdict on a trial that is by default 2 points below five others, of 400 examples."""
    board = RungBoard(plan(examples=400))
    for trial, right in enumerate([208, 208, 208, 208, 208, right_of_the_last]):
        if is_paired:
            board.remember(trial, 25, measured(right, first=first if trial == 5 else 0))
        board.add(Score(trial, 25, right / 400))
    return board.verdict(Score(5, 25, right_of_the_last / 400))


def test_paired_differences_are_significant_sooner():
    # two points are less than one standard error of the difference of two scores, sqrt(2 * 0.25 / 400) = 3.5 points,
    # and paired, with 8 examples that one has right and none that the other has, 2.8 errors of 0.7 points
    assert compared(is_paired=False) is None
    assert compared(is_paired=True) == "rung 0 (25 steps): 0.5, and 5 of 5 are better by more than their noise"


def test_trial_within_noise_of_the_best_continues():
    # 8 examples more are 2.8 errors, for it and not against it; without the first 2 and with 1 more it is one behind
    # with an error of the root of 3
    assert compared(is_paired=True, right_of_the_last=216) is None
    assert compared(is_paired=True, right_of_the_last=207, first=2) is None
    assert compared(is_paired=True, right_of_the_last=206, first=2) is not None
    # without the first 4 and with 2 more: two behind, with an error of the root of 6, and 0.82 errors are few
    assert compared(is_paired=True, right_of_the_last=206, first=4) is None
    # without the first 5 and with 1 more: four behind, 1.6 errors; with 2 more three, 1.13 errors
    assert compared(is_paired=True, right_of_the_last=204, first=5) is not None
    assert compared(is_paired=True, right_of_the_last=205, first=5) is None


def judged(own_score: float, own_losses: float, others_score: float = 0.5, others_losses: float = 1.5) -> str | None:
    """Return the verdict on a trial against five others, of 100 examples whose losses vary about these means."""
    rungs = RungBoard(plan(examples=100))
    wave = 0.5 * np.sin(np.arange(100))
    for trial in range(6):
        score, losses = (own_score, own_losses) if trial == 5 else (others_score, others_losses)
        right = np.arange(100) < 100 * score
        rungs.remember(trial, 25, ExampleLosses.of(losses + wave * (1 + trial), right))
        rungs.add(Score(trial, 25, score))
    return rungs.verdict(Score(5, 25, own_score))


def test_clearly_higher_loss_stops_a_trial():
    # the losses differ by 0.5 and by waves of amplitude 0.5 to 2.5, which have errors of 0.035 to 0.18
    assert judged(0.5, 2.0) is not None
    assert judged(0.5, 1.55) is None
    assert judged(0.51, 4.0) is None
    assert judged(0.49, 4.0) is not None
    assert judged(0.1, 1.4) is None


def test_examples_are_remembered_by_significance_alone():
    board = RungBoard(plan(Rule.CHANCE))
    board.remember(0, 25, measured(3))
    board.remember(1, 25, measured(3))
    assert board.loss_differences(0, [0], 1) == [None]


def test_no_trial_stops_without_a_rule():
    board = RungBoard(plan(Rule.NONE))
    assert arrive(board, *(Score(trial, 25, 0.9 - 0.1 * trial) for trial in range(8))) == [None] * 8


SURE = plan(examples=500)


def sized_verdict(plan: RungPlan, readings: list[tuple[float, float]]) -> str | None:
    """Return the verdict on the last of some readings, each a score and a size."""
    rungs = RungBoard(plan)
    for trial, (score, size) in enumerate(readings):
        rungs.add(Score(trial, 25, score), size=size)
    return rungs.verdict(Score(len(readings) - 1, 25, readings[-1][0]))


@pytest.mark.parametrize("by", [SURE, plan(BestShare())], ids=["significance", "best share"])
def test_larger_trials_do_not_stop_a_smaller_one(by):
    larger = [(0.9, 100.0 + trial) for trial in range(6)]
    assert sized_verdict(by, [*larger, (0.3, 99.0)]) is None
    assert sized_verdict(by, [*larger, (0.3, 200.0)]) is not None
    # of equal size they count
    assert sized_verdict(by, [*((0.9, 100.0) for _ in range(6)), (0.3, 100.0)]) is not None


def test_pruning_by_size_compares_with_no_larger_trials():
    # five others are as small: three of six must be better, however many larger ones are
    larger = [(0.9, 500.0)] * 20
    two = [*larger, (0.9, 10.0), (0.9, 10.0), (0.2, 10.0), (0.2, 10.0), (0.2, 10.0), (0.3, 50.0)]
    assert sized_verdict(SURE, two) is None
    three = [*larger, (0.9, 10.0), (0.9, 10.0), (0.9, 10.0), (0.2, 10.0), (0.2, 10.0), (0.3, 50.0)]
    assert sized_verdict(SURE, three) == "rung 0 (25 steps): 0.3, and 3 of 5 are better by more than their noise"


@pytest.mark.parametrize("rule", [BestShare(), Rule.SIGNIFICANCE])
def test_with_one_size_the_rule_is_the_one_without_sizes(rule):
    generator = np.random.default_rng(3)
    best, stopped = plan(rule, examples=400, protected=Protected.BEST), 0
    for _ in range(20):
        with_sizes, without = RungBoard(best), RungBoard(best)
        for trial, right in enumerate(generator.integers(100, 300, 30)):
            score, who = Score(trial, 25, right / 400), Contestant("lora_qv" if trial < 5 else None, f"{trial}")
            with_sizes.add(score, who, size=7.0)
            without.add(score, who)
            assert with_sizes.verdict(score) == without.verdict(score)
            stopped += without.verdict(score) is not None
    assert stopped > 20


def win_probability(chance: float, *, is_published: bool = True) -> WinProbability:
    return WinProbability(rival=2, is_published=is_published, chance=chance)


@pytest.mark.parametrize(
    ("chance", "is_published", "reason"),
    [
        (0.09, True, None),
        (0.0899, True, "0.4, and 9.0% likely to beat trial 2, the best published method"),
        (0.0899, False, None),
        (0.02, False, None),
        (0.0199, False, "0.4, and 2.0% likely to beat trial 2, the best so far"),
    ],
)
def test_by_chance_a_trial_stops_that_is_unlikely_to_be_better(chance, is_published, reason):
    rungs = RungBoard(plan(Rule.CHANCE))
    reading = Score(9, 25, 0.4)
    rungs.add(reading)
    verdict = rungs.verdict(reading, win_probability(chance, is_published=is_published))
    assert verdict == (None if reason is None else f"rung 0 (25 steps): {reason}")


def test_chance_rule_spares_uncertain_and_protected_trials():
    rungs, hopeless = RungBoard(plan(Rule.CHANCE, protected=Protected.BEST)), win_probability(0.0)
    reading = Score(0, 25, 0.4)
    rungs.add(reading, Contestant(method="lora_qv"))
    assert rungs.verdict(reading, hopeless) is None
    other = Score(1, 25, 0.4)
    rungs.add(other, Contestant())
    assert rungs.verdict(other) is None
    assert rungs.verdict(other, hopeless) is not None


def test_chance_rule_stops_collapsed_trials():
    rungs = RungBoard(plan(Rule.CHANCE, stops_collapsed=True, guessing_loss=0.7))
    for trial in range(4):
        rungs.add(Score(trial, 25, 0.8, 0.3, {"validation_loss": 0.3, "same_prediction": 0.6}))
    collapsed = Score(4, 25, 0.5, 0.71, {"validation_loss": 0.71, "same_prediction": 1.0})
    rungs.add(collapsed)
    assert "collapsed" in str(rungs.verdict(collapsed, win_probability(0.9)))
