"""Comparison of LoRA with the whole space, by the expected scores behind the noisy ones of a table."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from table_arms.shrinkage import expected_scores

TIE = 0.5
"""Points below the best LoRA within which a configuration counts as equal."""

DRAWS = 400
"""Number of draws from the posterior of expected scores."""

_QUARTILES = 1.349
"""Distance of the quartiles of a normal variable, in standard deviations."""

NAMES = {"lora": "LoRA", "space": "whole space"}


def comparison_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each table with rows of both kinds and pairs of seeds, about expected scores in points.

    An expected score is that over seeds and examples. Its noise is that of the pairs of the task and of the examples.
    The best of a kind is the mean of the highest, over draws from the posterior; the difference has a 95% interval. The
    last columns are the standard deviation over seeds, and of the expected scores of each kind, by their quartiles.
    """
    columns = "best LoRA | best of the space | space less LoRA | five best on test: LoRA | space | smallest"
    yield f"| task | budget | {columns} | over seeds | LoRA | space |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    scored = [row for row in rows if row["failure"] is None]
    for task, budget in dict.fromkeys((row["task"], row["budget"]) for row in scored):
        deviation = seed_deviation([row for row in scored if row["task"] == task])
        firsts = [row for row in scored if (row["task"], row["budget"], row["repeats"]) == (task, budget, None)]
        kinds = {kind: [row for row in firsts if row["kind"] == kind] for kind in ("lora", "space")}
        if deviation is None or not all(kinds.values()):
            continue
        drawn = {kind: expected_draws(of_kind, deviation) for kind, of_kind in kinds.items()}
        best = {kind: draw.max(axis=1) for kind, draw in drawn.items()}
        low, high = np.quantile(best["space"] - best["lora"], (0.025, 0.975))
        five = {kind: sorted(of_kind, key=lambda row: -row["score"])[:5] for kind, of_kind in kinds.items()}
        means = {kind: draw.mean(axis=0) for kind, draw in drawn.items()}
        enough = means["lora"].max() - TIE
        tied = [row for kind in kinds for row, mean in zip(kinds[kind], means[kind], strict=True) if mean >= enough]
        smallest = min(row["stored_parameters"] for row in tied)
        spreads = [np.median(np.ptp(np.quantile(drawn[kind], (0.25, 0.75), axis=1), axis=0)) for kind in kinds]
        yield (
            f"| {task} | {budget} | {best['lora'].mean():.1f} | {best['space'].mean():.1f} "
            f"| {(best['space'] - best['lora']).mean():+.1f} ({low:+.1f} to {high:+.1f}) "
            f"| {100 * fmean(row['test_score'] for row in five['lora']):.1f} "
            f"| {100 * fmean(row['test_score'] for row in five['space']):.1f} | {smallest:,} "
            f"| {deviation:.1f} | {spreads[0] / _QUARTILES:.1f} | {spreads[1] / _QUARTILES:.1f} |"
        )


def front_lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line for each kind and budget of a task, about the best one beside the best LoRA of the largest budget.

    The parameters are those of the row with the highest expected score, and their share of those of the LoRA.
    """
    yield "| task | budget | rows | kind | best | less LoRA at the largest | five best on test | parameters | share |"
    yield "|---|---|--:|---|--:|--:|--:|--:|--:|"
    scored = [row for row in rows if row["failure"] is None]
    for task in dict.fromkeys(row["task"] for row in scored):
        of_task = [row for row in scored if row["task"] == task]
        deviation = seed_deviation(of_task)
        budgets = sorted({row["budget"] for row in of_task}, key=lambda budget: float(budget.strip("%")))
        if deviation is None or len(budgets) < 2:
            continue
        firsts = [row for row in of_task if row["repeats"] is None]
        groups = [
            (budget, kind, [row for row in firsts if (row["budget"], row["kind"]) == (budget, kind)])
            for budget in reversed(budgets)
            for kind in ("lora", "space")
        ]
        reference: NDArray[np.float64] | None = None
        largest = 0
        for budget, kind, group in groups:
            if not group:
                continue
            drawn = expected_draws(group, deviation)
            best, winner = drawn.max(axis=1), group[int(drawn.mean(axis=0).argmax())]["stored_parameters"]
            if reference is None:
                reference, largest = best, winner
                less = ""
            else:
                low, high = np.quantile(best - reference, (0.025, 0.975))
                less = f"{(best - reference).mean():+.1f} ({low:+.1f} to {high:+.1f})"
            five = sorted(group, key=lambda row: -row["score"])[:5]
            yield (
                f"| {task} | {budget} | {len(group)} | {NAMES[kind]} | {best.mean():.1f} | {less} "
                f"| {100 * fmean(row['test_score'] for row in five):.1f} | {winner:,} | {winner / largest:.2f} |"
            )


def seed_deviation(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the standard deviation of scores over seeds, in points; None without a pair."""
    tables: dict[str, dict[int, float]] = {}
    for row in rows:
        tables.setdefault(row["budget"], {})[row["number"]] = row["score"]
    pairs = [(row["score"], tables[row["budget"]].get(row["repeats"])) for row in rows]
    squares = [(one - other) ** 2 / 2 for one, other in pairs if other is not None]
    return 100 * math.sqrt(fmean(squares)) if squares else None


def expected_draws(rows: Sequence[dict[str, Any]], deviation: float) -> NDArray[np.float64]:
    """Draw the expected scores of rows, in points, of shape (draws, rows)."""
    scores = [100 * row["score"] for row in rows]
    errors = [math.hypot(deviation, 100 * row["score_error"]) for row in rows]
    draw = np.random.default_rng(0)
    return np.stack([expected_scores(scores, errors, draw) for _ in range(DRAWS)])
