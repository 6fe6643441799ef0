"""Verdict of a study in sentences."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from support.shown_progress import ended

from studies.analysis.estimates import NO_ESTIMATES, Estimates
from studies.analysis.methods import first_other_method
from studies.analysis.ranks import Ranking, mean_scores, ranking_of
from studies.analysis.verdict import closing, verdict
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, RankedTrial, StudyRecord, TrialState
from studies.score_evidence import Estimate

COLLAPSED = "rung 0 (25 steps): collapsed: its training loss has risen from 1.7 to 1.9"


@pytest.fixture
def study(sample_storage: str) -> StudyRecord:
    with Ledger.open(sample_storage, read_only=True) as ledger:
        return replace(ledger.study("sample"), name="reviews", metric="accuracy")


@pytest.fixture
def ranking(sample_storage: str) -> Ranking:
    with Ledger.open(sample_storage, read_only=True) as ledger:
        return ranking_of(ledger, ledger.study("sample"))


@pytest.fixture
def verdict_of(study: StudyRecord) -> Callable[..., str]:
    """Return the verdict of a ranking with some changes."""
    return lambda ranking, **changes: verdict(replace(ranking, **changes), study)


def complete(ranking: Ranking, *scores: float) -> Ranking:
    """Rank published and discovered trials with these scores."""
    first = [trial for trial in ranking.trials if trial.state is TrialState.COMPLETE]
    trials = [replace(first[n % 2], number=n, score=score) for n, score in enumerate(scores)]
    return with_scores(ranking, trials)


def with_scores(ranking: Ranking, trials: Sequence[RankedTrial], **changes: object) -> Ranking:
    """Rank other trials, each trained once."""
    counts = {"scores": mean_scores(trials), "seeds": dict.fromkeys(mean_scores(trials), 1)}
    return replace(ranking, trials=tuple(trials), **counts, **changes)


def test_equal_scores_are_described_as_constant_predictions(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    assert verdict_of(complete(ranking, 0.5092, 0.5092, 0.5092)) == (
        "Nothing was learned: all 3 trials that ran to the end have the same accuracy, 0.5092, as constant predictions "
        "have. Raise training.steps; where a label is rare, add examples of it to train."
    )


def test_verdict_of_a_solved_task_recommends_a_harder_task(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    assert verdict_of(replace(complete(ranking, 1.0, 1.0, 1.0), is_constant=False)) == (
        "Nothing can be told apart: all 3 trials that ran to the end have the same accuracy, 1.0000. A harder task or "
        "more validation examples would show who is better."
    )


@pytest.mark.parametrize("scores", [(0.5092, 0.5092), (0.5092, 0.5092, 0.5093)])
def test_two_of_one_score_may_be_chance_and_one_that_differs_has_learned(
    ranking: Ranking, verdict_of: Callable[..., str], scores: tuple[float, ...]
) -> None:
    assert "learned" not in verdict_of(complete(ranking, *scores))


def test_trials_that_collapsed_are_counted(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    text = verdict_of(ranking)
    assert "collapsed" not in text
    trials = tuple(replace(one, reason=COLLAPSED if one.reason else None) for one in ranking.trials)
    pruned = sum(one.reason is not None for one in trials)
    assert verdict_of(replace(ranking, trials=trials)) == f"{text} {pruned} of {len(trials)} trials collapsed."


def with_head(ranking: Ranking, *scores: float) -> Ranking:
    """Rank the task head alone, a discovery and a published method with these scores."""
    published = next(one for one in ranking.trials if one.method is not None and one.score is not None)
    found = next(one for one in ranking.trials if one.method is None and one.score is not None)
    three = (replace(published, method="head_only"), found, published)
    trials = [replace(one, number=n, score=scores[n]) for n, one in enumerate(three)]
    return with_scores(ranking, sorted(trials, key=lambda one: -(one.score or 0)), estimates=NO_ESTIMATES)


def _fail(which: object) -> Any:
    pytest.fail("not asked")


def estimated(ranking: Ranking, *trials: tuple[str | None, int, float, float]) -> Ranking:
    """Rank complete trials with methods, sizes, and independent estimates, the best first."""
    found = next(one for one in ranking.trials if one.method is None and one.score is not None)
    of = {number: Estimate(mean=mean, deviation=deviation) for number, (*_, mean, deviation) in enumerate(trials)}

    def difference(first: int, second: int) -> Estimate:
        deviation = math.hypot(of[first].deviation, of[second].deviation)
        return Estimate(mean=of[first].mean - of[second].mean, deviation=deviation)

    shown = [
        replace(found, number=number, method=method, stored_parameters=size, description=f"edits {number}", score=mean)
        for number, (method, size, mean, _) in enumerate(trials)
    ]
    estimates = Estimates(of=of, difference=difference, joint=_fail, posterior=_fail, seed_deviation=0.0123)
    return with_scores(ranking, shown, estimates=estimates)


DISCOVERY, LORA, ADAPTER = (
    (None, 1200, 0.5, 0.003),
    ("lora_all", 1100, 0.46, 0.004),
    ("parallel_adapter_ffn", 1000, 0.44, 0.004),
)


def test_verdict_begins_with_a_recommendation_and_its_leads(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    text = verdict_of(estimated(ranking, DISCOVERY, LORA, ADAPTER, ("head_only", 0, 0.4, 0.004)))
    assert text.startswith(
        "Use trial 0: edits 0. It has 0.5000 ± 0.0059 accuracy by estimate (95%), with 1,200 parameters. Over "
        "seeds of training its scores deviate by 0.0123 (standard deviation).\n"
        "Over plain LoRA, lora_all (trial 1), it is +0.0400 ± 0.0098, better with a probability of 99%. "
        "Over the task head alone (trial 3) it is +0.1000 ± 0.0098.\n"
    )
    assert text.endswith("To be sure: deltaspace confirm reviews --top 1 --seeds 5 --against lora_all")
    assert "enough" not in text
    assert "smallest" not in text


def test_best_method_that_is_not_lora_is_compared_too(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    text = verdict_of(estimated(ranking, DISCOVERY, ("mam_adapter", 1100, 0.49, 0.004), LORA))
    assert "Over plain LoRA, lora_all (trial 2), it is +0.0400 ± 0.0098" in text
    assert "Over the best published method, mam_adapter (trial 1), it is +0.0100 ± 0.0098, better" in text


def test_lora_is_enough_without_a_better_trial(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    near = verdict_of(estimated(ranking, DISCOVERY, ("lora_qv", 1100, 0.495, 0.004)))
    assert "it is +0.0050 ± 0.0098, better with a probability of 84%. LoRA is enough here" in near
    best = verdict_of(estimated(ranking, ("lora_all", 1100, 0.5, 0.003), (None, 1200, 0.49, 0.004)))
    assert best.startswith("Use trial 0: lora_all, edits 0.")
    assert "That is plain LoRA, and it is enough here: the best other, trial 1, is -0.0100 ± 0.0098 against" in best


def test_lora_is_compared_with_lora_at_usual_targets(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    near = estimated(ranking, DISCOVERY, ("lora_qv", 1100, 0.495, 0.004))
    described = {
        "LoRA r=1, query+value + LoRA r=1, ×2, FFN up": "LoRA at usual targets",
        "LoRA r=1, query+value + parallel diagonal, FFN output": "plain LoRA",
        "parallel adapter r=2, FFN output + LoRA r=1, key": "plain LoRA",
    }
    for description, over in described.items():
        text = verdict_of(with_scores(near, [replace(near.trials[0], description=description), near.trials[1]]))
        lead = f"\nOver {over}, lora_qv (trial 1), it is +0.0050 ± 0.0098, better with a probability of 84%. "
        enough = "LoRA is enough" if over == "plain LoRA" else "Usual targets are enough"
        assert f"{lead}{enough} here: nothing is shown to be better." in text


def test_method_at_another_rate_or_size_is_no_discovery(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    again = estimated(ranking, DISCOVERY, ("lora_all", 1100, 0.46, 0.004))
    trials = [replace(again.trials[0], description="LoRA r=3, query+value (lora_qv)"), again.trials[1]]
    text = verdict_of(with_scores(again, trials))
    assert "That is plain LoRA." in text
    assert "2 of 2 trials of published methods ran to the end." in text
    assert "discover" not in text


def test_best_method_is_compared_with_another_one(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    best, again = ("mam_adapter", 1100, 0.5, 0.003), ("mam_adapter", 1000, 0.499, 0.003)
    alone = verdict_of(estimated(ranking, best, again))
    assert "published method, " not in alone
    assert alone.endswith("To be sure: deltaspace confirm reviews --top 1 --seeds 5")
    both = verdict_of(estimated(ranking, best, again, ADAPTER))
    assert "Over the best other published method, parallel_adapter_ffn (trial 2), it is +0.0600 ± 0.0098" in both
    assert both.endswith("--against parallel_adapter_ffn")


def test_smallest_trial_expected_to_lose_at_most_half_a_point_is_named(
    ranking: Ranking, verdict_of: Callable[..., str]
) -> None:
    small, unknown, worse = (None, 300, 0.496, 0.003), (None, 200, 0.49, 0.03), (None, 100, 0.47, 0.003)
    text = verdict_of(estimated(ranking, DISCOVERY, small, LORA, unknown, worse))
    assert (
        "The smallest trial expected to be at most half a point worse is trial 1 with 300 parameters: -0.0040 ± 0.0083."
    ) in text


def test_launch_ends_with_the_score_to_expect_on_new_examples(ranking: Ranking) -> None:
    found = replace(estimated(ranking, (None, 1200, 0.8, 0.015), LORA), examples=ExampleCounts(whole=400, rungs=100))
    # 0.8 * 0.2 / 400 is the square of 0.02, beside 0.015 a deviation of 0.025
    assert closing(found, "accuracy") == (
        "On new examples of the same kind expect 0.8000 ± 0.0490 accuracy of trial 0 (95%): its estimate, with the "
        "sampling error of 400 validation examples."
    )
    assert closing(with_head(ranking, 0.4, 0.5, 0.45), "accuracy") == ""


def test_verdict_finds_constant_predictions_of_any_score(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    text = verdict_of(complete(ranking, 0.52, 0.51, 0.5), is_constant=True)
    assert text == (
        "Nothing was learned: all 3 trials that ran to the end predict a constant; the best has 0.5200 accuracy. "
        "Raise training.steps; where a label is rare, add examples of it to train."
    )


def test_with_few_trials_the_interval_is_that_of_the_examples(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
    few = with_head(ranking, 0.4, 0.5, 0.45)
    unknown = verdict_of(few, examples=None)
    method = next(one.method for one in few.trials if one.number == 2)
    assert unknown.startswith(
        "Trial 1 scored highest; 3 trials cannot tell which is best: estimates need 12 measured trials, 4 of them "
        f"complete.\nIt has +0.0500 accuracy over {method} (trial 2), the best published method, going by one score "
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
def test_few_trials_never_show_that_something_was_found(
    ranking: Ranking, verdict_of: Callable[..., str], examples: ExampleCounts | None
) -> None:
    text = verdict_of(with_head(ranking, 0.4, 0.9, 0.45), examples=examples)
    assert "cannot tell" in text
    assert "found" not in text
    behind = verdict_of(with_head(ranking, 0.4, 0.45, 0.5), examples=examples)
    assert re.match(r"\w+ \(trial 2\) scored highest; 3 trials cannot tell which is best", behind)
    assert "The best discovery, trial 1, has -0.0500" in behind


def test_discoveries_that_ran_to_the_end_are_counted(ranking: Ranking, verdict_of: Callable[..., str]) -> None:
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


@pytest.mark.parametrize(("own", "expected"), [(None, "lora_qv"), ("lora_qv", "bitfit"), ("bitfit", "lora_qv")])
def test_first_other_method_may_be_a_proposal_that_equals_it(own: str | None, expected: str) -> None:
    trials = [ended(2, "LoRA r=8, key", 0.6), ended(1, "LoRA r=8, query+value (lora_qv)", 0.5)]
    assert first_other_method([*trials, ended(0, "bias", 0.4, method="bitfit")], own) == expected
    assert first_other_method(trials, "lora_qv") is None
