"""Comparison of LoRA with the whole space, by the expected scores behind the noisy ones of a table."""

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray
from search_arms.intervals import with_interval

from table_arms.noise import FEWEST, at_best_rates, noise_of, seed_deviation
from table_arms.shrinkage import expected_scores

TIE = 0.5
"""Points below the best LoRA within which a configuration counts as equal."""

DRAWS = 400
"""Number of draws from the posterior of expected scores."""

_FIVE = 5
"""Number of rows with the highest scores that are compared on test."""

_QUARTILES = 1.349
"""Distance of the quartiles of a normal variable, in standard deviations."""

NAMES = {"lora": "LoRA", "space": "whole space"}


def comparison_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each table with rows of both kinds and pairs of seeds, about expected scores in points.

    LoRA is that at its best rates; see `at_best_rates`.
    An expected score is that over seeds and examples; its noise is `noise_of` the task.
    The best of a kind is the mean of the highest, over draws from the posterior; the difference has a 95% interval. Of
    both kinds equally many random rows take part in a draw. The last columns are the standard deviation over seeds, and
    of the expected scores of each kind, by their quartiles. The last line has the mean differences of all tables.
    Tables with fewer than five rows of a kind are left out.
    """
    columns = "best LoRA | best of the space | space less LoRA | five best on test: LoRA | space | smallest"
    yield f"| task | budget | rows | {columns} | over seeds | LoRA | space |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    scored = at_best_rates([row for row in rows if row["failure"] is None])
    differences: list[tuple[float, float]] = []
    for task, budget in dict.fromkeys((row["task"], row["budget"]) for row in scored):
        of_task = [row for row in scored if row["task"] == task]
        deviation = seed_deviation(of_task)
        firsts = [row for row in scored if (row["task"], row["budget"], row["repeats"]) == (task, budget, None)]
        kinds = {kind: [row for row in firsts if row["kind"] == kind] for kind in NAMES}
        count = min(map(len, kinds.values()))
        if deviation is None or count < FEWEST:
            continue
        noise = noise_of(of_task)
        drawn = {kind: expected_draws(of_kind, noise) for kind, of_kind in kinds.items()}
        best = {kind: best_of(draw, count) for kind, draw in drawn.items()}
        difference = best["space"] - best["lora"]
        means = {kind: draw.mean(axis=0) for kind, draw in drawn.items()}
        enough = means["lora"].max() - TIE
        tied = [row for kind in kinds for row, mean in zip(kinds[kind], means[kind], strict=True) if mean >= enough]
        smallest = min(row["stored_parameters"] for row in tied)
        on_test = [test_of_five(kinds[kind], count) for kind in kinds]
        differences.append((float(difference.mean()), on_test[1] - on_test[0]))
        spreads = [np.median(np.ptp(np.quantile(drawn[kind], (0.25, 0.75), axis=1), axis=0)) for kind in kinds]
        yield (
            f"| {task} | {budget} | {count} | {best['lora'].mean():.1f} | {best['space'].mean():.1f} "
            f"| {with_quantiles(difference)} | {on_test[0]:.1f} | {on_test[1]:.1f} | {smallest:,} "
            f"| {deviation:.1f} | {spreads[0] / _QUARTILES:.1f} | {spreads[1] / _QUARTILES:.1f} |"
        )
    if len(differences) > 1:
        of_best, of_five = map(with_interval, zip(*differences, strict=True))
        yield f"| all | {len(differences)} tables | | | | {of_best} | on test: | {of_five} | | | | |"


def front_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind and budget of a task, about the best one beside the best LoRA of the largest budget.

    LoRA is that at its best rates. Of all groups of a task equally many random rows take part. The parameters are those
    of the row with the highest expected score, and their share of those of the LoRA. Groups of fewer than five rows are
    left out, and budgets above the largest one with LoRA.
    """
    yield "| task | budget | kind | rows | best | less LoRA at the largest | five best on test | parameters | share |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    scored = at_best_rates([row for row in rows if row["failure"] is None])
    for task in dict.fromkeys(row["task"] for row in scored):
        of_task = [row for row in scored if row["task"] == task]
        groups: dict[tuple[float, str], list[dict[str, Any]]] = {}
        for row in of_task:
            if row["repeats"] is None:
                groups.setdefault((-float(row["budget"].strip("%")), row["kind"]), []).append(row)
        enough = [group for _, group in sorted(groups.items()) if len(group) >= FEWEST]
        large = list(dropwhile(lambda group: group[0]["kind"] != "lora", enough))
        if seed_deviation(of_task) is None or len({row["budget"] for group in large for row in group}) < 2:
            continue
        count = min(map(len, large))
        noise = noise_of(of_task)
        drawn = [expected_draws(group, noise) for group in large]
        best = [best_of(one, count) for one in drawn]
        winners = [group[int(one.mean(axis=0).argmax())] for group, one in zip(large, drawn, strict=True)]
        reference, largest = best[0], winners[0]["stored_parameters"]
        for group, highest, winner in zip(large, best, winners, strict=True):
            less = "" if winner is winners[0] else with_quantiles(highest - reference)
            yield (
                f"| {task} | {winner['budget']} | {NAMES[winner['kind']]} | {count} | {highest.mean():.1f} "
                f"| {less} | {test_of_five(group, count):.1f} "
                f"| {winner['stored_parameters']:,} | {winner['stored_parameters'] / largest:.2f} |"
            )


def with_quantiles(drawn: NDArray[np.float64]) -> str:
    """Format the mean of draws with the interval that has 95% of them."""
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{drawn.mean():+.1f} ({low:+.1f} to {high:+.1f})"


def best_of(drawn: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the highest of ``count`` random rows of every draw, of shape (draws,)."""
    order = np.random.default_rng(1).permuted(np.tile(np.arange(drawn.shape[1]), (len(drawn), 1)), axis=1)
    return np.take_along_axis(drawn, order[:, :count], axis=1).max(axis=1)


def test_of_five(rows: Sequence[dict[str, Any]], count: int) -> float:
    """Return the mean test score, in points, of the five with the highest scores among ``count`` random rows."""
    draw = random.Random(1)
    samples = (draw.sample(rows, count) for _ in range(DRAWS))
    best = (sorted(sample, key=lambda row: -row["score"])[:_FIVE] for sample in samples)
    return 100 * fmean(fmean(row["test_score"] for row in five) for five in best)


def expected_draws(rows: Sequence[dict[str, Any]], noise: float) -> NDArray[np.float64]:
    """Draw the expected scores of rows, in points, of shape (draws, rows)."""
    return _expected_draws(tuple(100 * row["score"] for row in rows), noise, DRAWS)


@cache  # both comparisons take the same draws, and they take seconds
def _expected_draws(scores: tuple[float, ...], noise: float, draws: int) -> NDArray[np.float64]:
    draw = np.random.default_rng(0)
    return np.stack([expected_scores(scores, noise, draw) for _ in range(draws)])
