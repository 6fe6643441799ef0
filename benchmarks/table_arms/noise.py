"""Noise of the scores of tables: how much they deviate over seeds, and over examples in comparisons."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rival_arms.sweeps import LORA_RATES

FEWEST = 5
"""Number of configurations of a kind in a table from which on it is compared."""

_DECADE = 10.0


def at_best_rates(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without LoRA at learning rates outside the best decade of its table.

    LoRA's rates are drawn from two decades, those of other rows are the ones that a search tries first. Beside them
    half of all LoRA rows would have rates that no tuning keeps. The best decade is the lower, the middle or the upper
    one with the highest mean score, among those with at least `FEWEST` configurations of LoRA; without one a table has
    no LoRA.
    """
    lora: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == "lora" and row["repeats"] is None:
            lora.setdefault((row["task"], row["budget"]), []).append(row)
    lowest = {table: _best_decade(of_table) for table, of_table in lora.items()}

    def is_kept(row: dict[str, Any]) -> bool:
        low = lowest.get((row["task"], row["budget"]))
        return row["kind"] != "lora" or (low is not None and low <= _rate(row) <= _DECADE * low)

    return [row for row in rows if is_kept(row)]


def _best_decade(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the lowest rate of the best decade."""
    lowest, highest = LORA_RATES
    lows = (lowest, math.sqrt(lowest * highest / _DECADE), highest / _DECADE)
    decades = {low: [row["score"] for row in rows if low <= _rate(row) <= _DECADE * low] for low in lows}
    means = {low: fmean(scores) for low, scores in decades.items() if len(scores) >= FEWEST}
    return max(means, key=means.__getitem__, default=None)


def _rate(row: dict[str, Any]) -> float:
    """Return the learning rate of a LoRA configuration, whose sides have one in common."""
    return max(row[f"{side}_learning_rate"] or 0.0 for side in ("attention", "ffn"))


def seed_deviation(rows: Sequence[dict[str, Any]]) -> float | None:
    """Return the standard deviation of scores over seeds, in points; None without pairs that count.

    Pairs of which one training did not learn, with less than half of the other's score, are left out: one of them would
    be most of the noise of a task, whose best configurations are compared.
    """
    tables: dict[str, dict[int, float]] = {}
    for row in rows:
        tables.setdefault(row["budget"], {})[row["number"]] = row["score"]
    pairs = [(row["score"], tables[row["budget"]].get(row["repeats"])) for row in rows]
    found = [(one, other) for one, other in pairs if other is not None]
    squares = [(one - other) ** 2 / 2 for one, other in found if max(one, other) <= max(0.0, 2 * min(one, other))]
    return 100 * math.sqrt(fmean(squares)) if squares else None


def example_error(rows: Sequence[dict[str, Any]]) -> float:
    """Return the standard error of scores over other examples in comparisons of rows of one table, in points.

    All rows are measured on the same examples, whose difficulty shifts all scores alike, so their sampling error is too
    large. Validation and test have no example in common: the variance of the difference of a row's two scores, about
    the mean of its table, is the sum of both errors, which are as the inverse numbers of examples.

    Args:
        rows: Rows of one task.
    """
    differences: dict[str, list[float]] = {}
    for row in rows:
        differences.setdefault(row["budget"], []).append(row["score"] - row["test_score"])
    squares = sum((one - fmean(table)) ** 2 for table in differences.values() for one in table)
    validation, test = (fmean(row[f"{split}_examples"] for row in rows) for split in ("validation", "test"))
    return 100 * math.sqrt(squares / (len(rows) - len(differences)) * test / (validation + test))


def noise_of(rows: Sequence[dict[str, Any]]) -> float:
    """Return the standard deviation of scores of a task over seeds and examples, in points.

    The part that seeds and examples have in common is counted in both.
    """
    return math.hypot(seed_deviation(rows) or 0.0, example_error(rows))
