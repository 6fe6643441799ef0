"""Verdict of a study in sentences."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from studies.analysis.estimates import NO_ESTIMATES, Estimates, Lead
from studies.analysis.ranks import Ranking, mean_scores, ranking_of
from studies.analysis.verdict import closing, verdict
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, RankedTrial, TrialState
from studies.score_evidence import Estimate

COLLAPSED = "rung 0 (25 steps): collapsed: its training loss has risen from 1.7 to 1.9"


@pytest.fixture
def ranking(sample_storage: str) -> Ranking:
    with Ledger.open(sample_storage, read_only=True) as ledger:
        return ranking_of(ledger, ledger.study("sample"))


def complete(ranking: Ranking, *scores: float) -> Ranking:
    """Rank published and discovered trials with these scores."""
    first = [trial for trial in ranking.trials if trial.state is TrialState.COMPLETE]
    trials = [replace(first[n % 2], number=n, score=score) for n, score in enumerate(scores)]
    return with_scores(ranking, trials)


def with_scores(ranking: Ranking, trials: Sequence[RankedTrial], **changes: object) -> Ranking:
    """Rank other trials, each trained once."""
    counts = {"scores": mean_scores(trials), "seeds": dict.fromkeys(mean_scores(trials), 1)}
    return replace(ranking, trials=tuple(trials), **counts, **changes)


def test_equal_scores_are_described_as_constant_predictions(ranking: Ranking) -> None:
    assert verdict(complete(ranking, 0.5092, 0.5092, 0.5092), "accuracy") == (
        "Nothing was learned: all 3 trials that ran to the end have the same accuracy, 0.5092, as constant predictions "
        "have."
    )


def test_verdict_of_a_solved_task_recommends_a_harder_task(ranking: Ranking) -> None:
    assert verdict(replace(complete(ranking, 1.0, 1.0, 1.0), is_constant=False), "accuracy") == (
        "Nothing can be told apart: all 3 trials that ran to the end have the same accuracy, 1.0000. A harder task or "
        "more validation examples would show who is better."
    )


@pytest.mark.parametrize("scores", [(0.5092, 0.5092), (0.5092, 0.5092, 0.5093)])
def test_two_of_one_score_may_be_chance_and_one_that_differs_has_learned(
    ranking: Ranking, scores: tuple[float, ...]
) -> None:
    assert "learned" not in verdict(complete(ranking, *scores), "accuracy")


def test_trials_that_collapsed_are_counted(ranking: Ranking) -> None:
    text = verdict(ranking, "accuracy")
    assert "collapsed" not in text
    trials = tuple(replace(one, reason=COLLAPSED if one.reason else None) for one in ranking.trials)
    pruned = sum(one.reason is not None for one in trials)
    assert verdict(replace(ranking, trials=trials), "accuracy") == f"{text} {pruned} of {len(trials)} trials collapsed."


def verdict_of(ranking: Ranking, **changes: object) -> str:
    return verdict(replace(ranking, **changes), "accuracy")


def with_head(ranking: Ranking, *scores: float) -> Ranking:
    """Rank the task head alone, a discovery and a published method with these scores."""
    published = next(one for one in ranking.trials if one.method is not None and one.score is not None)
    found = next(one for one in ranking.trials if one.method is None and one.score is not None)
    three = (replace(published, method="head_only"), found, published)
    trials = [replace(one, number=n, score=scores[n]) for n, one in enumerate(three)]
    return with_scores(ranking, sorted(trials, key=lambda one: -(one.score or 0)), estimates=NO_ESTIMATES)


def lead(mean: float, deviation: float = 0.01) -> Lead:
    return Lead(discovered=1, published=0, difference=Estimate(mean=mean, deviation=deviation))


def _fail(which: object) -> Any:
    pytest.fail("not asked")


def estimates(over_published: Lead, over_head: Lead | None = None) -> Estimates:
    return Estimates(of={}, lead=over_published, over_head=over_head, joint=_fail, posterior=_fail)


def test_a_launch_ends_with_how_sure_its_discovery_is_and_how_to_be_sure(ranking: Ranking) -> None:
    with_head_alone = with_head(ranking, 0.4, 0.5, 0.45)
    trials = tuple(replace(one, method="lora_qv") if one.number == 2 else one for one in with_head_alone.trials)
    over_head = replace(lead(0.02, 0.02), published=0)
    found = replace(estimates(over_head), joint=lambda _: (np.array([0.5, 0.46]), np.diag([4e-4, 0.0])))
    assert closing(replace(with_head_alone, trials=trials, estimates=found), "reviews", "accuracy") == (
        "Trial 1 is better than head_only with a probability of 84%. "
        "Over plain LoRA, lora_qv (trial 2), it is +0.0400 ± 0.0392 accuracy.",
        "To be sure: deltaspace confirm reviews --top 1 --seeds 5 --against head_only",
    )
    next_to_lora = replace(lead(0.1), published=2)
    text = closing(replace(with_head_alone, trials=trials, estimates=estimates(next_to_lora)), "reviews", "accuracy")
    assert text[0] == "Trial 1 is better than lora_qv with a probability of 99%."
    equal = replace(lead(0.0, 0.0), published=2)  # a discovery that is the method itself
    text = closing(replace(with_head_alone, trials=trials, estimates=estimates(equal)), "reviews", "accuracy")
    assert text[0] == "Trial 1 is better than lora_qv with a probability of 1%."
    assert closing(with_head_alone, "reviews", "accuracy") == ()


def test_expected_test_score_includes_shared_example_error(ranking: Ranking) -> None:
    with_head_alone = with_head(ranking, 0.4, 0.5, 0.45)
    found = replace(estimates(lead(0.02)), of={1: Estimate(mean=0.8, deviation=0.015)})
    with_head_alone = replace(with_head_alone, estimates=found, examples=ExampleCounts(whole=400, rungs=100))
    # 0.8 * 0.2 / 400 is the square of 0.02, beside 0.015 a deviation of 0.025
    assert closing(with_head_alone, "reviews", "accuracy")[1] == (
        "On new examples of the same kind expect 0.8000 ± 0.0490 accuracy of trial 1 (95%): its estimate, with the "
        "sampling error of 400 validation examples."
    )


def test_verdict_finds_constant_predictions_of_any_score(ranking: Ranking) -> None:
    text = verdict_of(complete(ranking, 0.52, 0.51, 0.5), is_constant=True)
    assert text == (
        "Nothing was learned: all 3 trials that ran to the end predict a constant; the best has 0.5200 accuracy."
    )


def test_gain_over_the_head_alone_has_an_interval(ranking: Ranking) -> None:
    with_head_alone = with_head(ranking, 0.4, 0.5, 0.45)
    text = verdict_of(with_head_alone, estimates=estimates(lead(0.05), lead(0.1, 0.02)))
    # 1.96 standard deviations
    assert "Over the task head alone (trial 0) it is +0.1000 ± 0.0392." in text


def test_with_few_trials_the_interval_is_that_of_the_examples(ranking: Ranking) -> None:
    few = with_head(ranking, 0.4, 0.5, 0.45)
    unknown = verdict_of(few, examples=None)
    method = next(one.method for one in few.trials if one.number == 2)
    assert unknown.startswith(
        "Trial 1 scored highest; 3 trials cannot tell which is best: estimates need 12 measured trials, 4 of them "
        f"complete. It has +0.0500 accuracy over {method} (trial 2), the best published method, going by one score "
        "each."
    )
    assert "Over the task head alone (trial 0) it is +0.1000." in unknown
    # two shares of 100 examples, without the half of the variance that trials on the same examples have in common
    text = verdict_of(few, examples=ExampleCounts(whole=100, rungs=100))
    reach = float(text.partition("It has +0.0500 ± ")[2].split()[0])
    plain = 1.959963984540054 * math.sqrt((0.25 + 0.45 * 0.55) / 100)
    assert reach == pytest.approx(plain / math.sqrt(2), abs=5e-5)
    assert text.count("accuracy (95%, on the same examples) over") == 1
    assert re.search(
        r"Over the task head alone \(trial 0\) it is \+0.1000 ± 0.\d{4} \(95%, on the same examples\)", text
    )


@pytest.mark.parametrize("examples", [None, ExampleCounts(whole=1_000_000, rungs=1)])
def test_few_trials_never_show_that_something_was_found(ranking: Ranking, examples: ExampleCounts | None) -> None:
    text = verdict_of(with_head(ranking, 0.4, 0.9, 0.45), examples=examples)
    assert "cannot tell" in text
    assert "found" not in text
    behind = verdict_of(with_head(ranking, 0.4, 0.45, 0.5), examples=examples)
    assert re.match(r"\w+ \(trial 2\) scored highest; 3 trials cannot tell which is best", behind)
    assert "The best discovery, trial 1, has -0.0500" in behind


@pytest.mark.parametrize(
    ("mean", "begins"),
    [
        (0.03, "Something better than all published methods was found: +0.0300 ± 0.0196"),
        (0.015, "Something was found that may be better than all published methods: +0.0150 ± 0.0196"),
        (0.005, "Nothing clearly better than the published methods was found: +0.0050 ± 0.0196"),
        (-0.005, "Nothing better than the published methods was found: -0.0050 ± 0.0196"),
    ],
)
def test_only_an_interval_above_zero_is_called_better(ranking: Ranking, mean: float, begins: str) -> None:
    assert verdict_of(with_head(ranking, 0.4, 0.5, 0.45), estimates=estimates(lead(mean))).startswith(begins)


def test_discoveries_that_ran_to_the_end_are_counted(ranking: Ranking) -> None:
    few = with_head(ranking, 0.4, 0.5, 0.45)
    found = next(one for one in few.trials if one.method is None)
    pruned = replace(found, number=9, state=TrialState.PRUNED, score=None, reason="rung 0 (25 steps): no good")
    published = next(one for one in few.trials if one.method is not None)
    assert "1 of 1 discoveries ran to the end." in verdict_of(few)
    failed = replace(pruned, number=11, state=TrialState.FAILED)
    text = verdict_of(few, trials=(*few.trials, pruned, replace(pruned, number=10), failed))
    assert "1 of 4 discoveries ran to the end; 2 were pruned and 1 failed." in text
    assert "Beside them 2 trials of published methods have ended." in text
    assert "; 1 was pruned. Beside them 1 trial of" in verdict_of(few, trials=(found, pruned, published))
