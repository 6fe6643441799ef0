"""What must be known beside the outcome of a confirmation, as sentences."""

from collections.abc import Iterator

from studies.confirming.results import ConfirmationResult
from studies.confirming.statistics import ALPHA
from studies.confirming.verdicts import least_seeds


def notes(result: ConfirmationResult) -> tuple[str, ...]:
    """What must be known to read the result, one line each."""
    return (*_on_progress(result), *_on_contenders(result), *_on_statistics(result))


def power_note(seeds: int, baselines: int) -> str | None:
    """What to say when so many seeds can show nothing, whatever the scores; None when they can."""
    least = least_seeds(baselines)
    if not baselines or seeds >= least:
        return None
    held = "baseline" if baselines == 1 else "baselines"
    return f"{seeds} seeds cannot show a difference to {baselines} {held}, whatever the scores; {least} seeds can."


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
