"""The outcome of a confirmation as sentences: what is said of each baseline, and what must be known beside it."""

from collections.abc import Iterator

from studies.confirming.results import ConfirmationResult, ContenderResult
from studies.confirming.statistics import ALPHA, LEVEL
from studies.confirming.verdicts import Comparison, Verdict, least_seeds
from trial_runner.tasks.measuring import score_of

_FIRST = "mam_adapter"


def verdict_sentences(result: ConfirmationResult) -> tuple[str, ...]:
    """One sentence per baseline, MAM first, and one on the optimism of the search."""
    return (*_verdicts(result), *_optimism(result))


def notes(result: ConfirmationResult) -> tuple[str, ...]:
    """What must be known to read the result, one line each."""
    return (*_on_progress(result), *_on_contenders(result), *_on_statistics(result))


def measure(metric: str) -> str:
    """What scores are of, so that more is better: a metric, negated where lower is better."""
    return metric if score_of(metric, 1.0) > 0 else f"{metric} (with a minus sign)"


def power_note(seeds: int, baselines: int) -> str | None:
    """What to say when so many seeds can show nothing, whatever the scores; None when they can."""
    least = least_seeds(baselines)
    if not baselines or seeds >= least:
        return None
    held = "baseline" if baselines == 1 else "baselines"
    return f"{seeds} seeds cannot show a difference to {baselines} {held}, whatever the scores; {least} seeds can."


def _verdicts(result: ConfirmationResult) -> Iterator[str]:
    winner = result.winner
    if _FIRST in winner.baselines:
        yield _is_the_baseline(winner, _FIRST)
    ordered = sorted(result.comparisons, key=lambda one: one.baseline != _FIRST)
    by_label = {contender.label: contender for contender in result.contenders}
    for comparison in ordered:
        yield _verdict(comparison, winner, by_label[comparison.baseline], result)
    for baseline in winner.baselines:
        if baseline != _FIRST:
            yield _is_the_baseline(winner, baseline)


def _is_the_baseline(winner: ContenderResult, baseline: str) -> str:
    return f"The best trial of the search (trial {winner.trial}) is {baseline} itself: nothing better was discovered."


def _verdict(
    comparison: Comparison, winner: ContenderResult, baseline: ContenderResult, result: ConfirmationResult
) -> str:
    who = _name_of(winner)
    if comparison.verdict is Verdict.UNDECIDED:
        return (
            f"Between {who} and {comparison.baseline} nothing is decided: {_why_undecided(winner, baseline, result)}."
        )
    said = {Verdict.BEATS: "beats", Verdict.LOSES: "loses to", Verdict.TIES: "ties with"}[comparison.verdict]
    shown = ", so no difference is shown" if comparison.verdict is Verdict.TIES else ""
    return (
        f"{who[0].upper()}{who[1:]} {said} {comparison.baseline} on the test split: {measure(result.metric)} "
        f"{_signed(comparison.difference)} in the mean ({LEVEL:.0%} interval {_signed(comparison.low)} to "
        f"{_signed(comparison.high)}, {comparison.pairs} seeds, p = {_p(comparison.adjusted_p)} after Holm{shown})."
    )


def _why_undecided(winner: ContenderResult, baseline: ContenderResult, result: ConfirmationResult) -> str:
    seeds = len(result.seeds)
    return (
        f"{winner.label} failed with {winner.failed} and {baseline.label} with {baseline.failed} of {seeds} seeds, "
        "so the runs that are left say too little"
    )


def _optimism(result: ConfirmationResult) -> Iterator[str]:
    winner = result.winner
    if result.is_finished and winner.spread is not None and winner.optimism is not None:
        yield (
            f"Optimism of the search: {winner.label} scored {winner.validation_score:.4f} on validation and "
            f"{winner.spread.mean:.4f} in the mean on test, a difference of {_signed(winner.optimism)}."
        )


def _on_progress(result: ConfirmationResult) -> Iterator[str]:
    if not result.is_finished:
        yield (
            f"Not finished: {result.ended} of {result.trials} trials have ended. Nothing is compared until all have; "
            "call the command again to continue."
        )
    if result.newer_winner is not None:
        yield (
            f"Trial {result.newer_winner} is the best of {result.study} by now; confirm it under another name "
            "with --name."
        )


def _on_contenders(result: ConfirmationResult) -> Iterator[str]:
    for one in result.contenders:
        if not one.is_within_budget:
            yield (
                f"{one.label} ignores the budget: it has {one.stored_parameters:,} parameters, the budget is "
                f"{result.budget_parameters:,}."
            )
        if one.trial is None:
            yield (
                f"{one.label} has no complete trial in {result.study}: its learning rates are the middle of their "
                "range, and others may do better."
            )
        if one.failed:
            yield f"{one.label} failed with {one.failed} of {len(result.seeds)} seeds; those pairs are left out."
    for baseline, why in result.left_out:
        yield f"{baseline} was left out: {why}"


def _on_statistics(result: ConfirmationResult) -> Iterator[str]:
    if not result.comparisons:
        return
    tests = " and ".join(dict.fromkeys(one.test.value for one in result.comparisons))
    yield (
        f"Verdicts go by permutation tests ({tests}), corrected by Holm, at {ALPHA}; bootstrap intervals of so few "
        "seeds are rather too narrow. Both speak of new seeds on this test split, not of other test examples."
    )
    powerless = [one for one in result.comparisons if one.smallest_adjusted_p > ALPHA]
    if powerless:
        note = power_note(min(one.pairs for one in powerless), len(result.comparisons))
        yield note or "The pairs that are left are too few to show a difference."


def _name_of(winner: ContenderResult) -> str:
    if winner.is_published:
        return f"the winner of the search, the published {winner.label},"
    return f"the discovered variant ({winner.label})"


def _signed(value: float | None) -> str:
    return "?" if value is None else f"{value:+.4f}"


def _p(value: float | None) -> str:
    if value is None:
        return "?"
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"
