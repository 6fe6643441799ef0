"""How far the table is, and the card beside it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from trial_table.points import ATTENTION_EDITS, FFN_EDITS, RATES, ROUNDS, SEEDS, SHARES, PlannedTrial
from trial_table.rows import COLUMNS, EXAMPLES, TRIALS
from trial_table.setting import Setting

_POINT = ["fingerprint", "attention_learning_rate", "ffn_learning_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How much of the grid is there.

    Attributes:
        done: Rows.
        planned: Rows when it is whole.
        cells: Pairs of edits of which something is there.
        planned_cells: All pairs.
        rounds: Rows of each round of the grid that are there, and that are planned.
        drawn: Rows beside the grid.
        failed: Rows without a score.
        seconds: Mean computing time of a row; None without any.
    """

    done: int
    planned: int
    cells: int
    planned_cells: int
    rounds: tuple[tuple[int, int], ...]
    drawn: int
    failed: int
    seconds: float | None

    @property
    def hours_left(self) -> float | None:
        return None if self.seconds is None else (self.planned - self.done) * self.seconds / 3600


def coverage(table: pd.DataFrame, grid: list[PlannedTrial], setting: Setting) -> Coverage:
    own = table[table["task"] == setting.task]
    there = own[own["key"].isin([row.key for row in grid])]
    planned = Counter(row.round for row in grid)
    known = set(there["key"])
    done = Counter(row.round for row in grid if row.key in known)
    return Coverage(
        done=len(there),
        planned=len(grid),
        cells=len(there[["attention", "ffn"]].drop_duplicates()),
        planned_cells=len({(row.attention, row.ffn) for row in grid}),
        rounds=tuple((done[number], planned[number]) for number in range(len(ROUNDS))),
        drawn=int((own["part"] == "drawn").sum()),
        failed=int((own["state"] == "failed").sum()),
        seconds=float(own["seconds"].mean()) if len(own) else None,
    )


def noise(table: pd.DataFrame) -> tuple[float, int] | None:
    """Standard deviation between seeds of one point, pooled, and over how many points; None if none has two."""
    found = table[table["state"] == "complete"].groupby(_POINT, dropna=False)["score"]
    spread = pd.DataFrame({"variance": found.var(), "more": found.count() - 1})
    spread = spread[spread["more"] > 0]
    if spread.empty:
        return None
    pooled = (spread["variance"] * spread["more"]).sum() / spread["more"].sum()
    return float(pooled**0.5), len(spread)


def best_cells(table: pd.DataFrame, count: int = 12) -> pd.DataFrame:
    """The best pairs of edits by the best point of each, a point being worth the mean of its seeds."""
    own = table[(table["part"] == "exhaustive") & (table["state"] == "complete")]
    points = own.groupby(["attention", "ffn", *_POINT], dropna=False)["score"].agg(["mean", "count"]).reset_index()
    cells = points.sort_values("mean", ascending=False).groupby(["attention", "ffn"], sort=False)
    best = cells.first().assign(points=cells.size(), seeds=cells["count"].first())
    return best[["mean", "seeds", "points"]].head(count)


def summary_lines(table: pd.DataFrame, grid: list[PlannedTrial], setting: Setting) -> list[str]:
    one = coverage(table, grid, setting)
    own = table[table["task"] == setting.task]
    lines = [
        f"{setting.task}: {one.done:,} of {one.planned:,} rows of the grid ({one.done / one.planned:.1%}), "
        f"{one.cells} of {one.planned_cells} pairs of edits touched; {one.drawn:,} draws; {one.failed} failed"
    ]
    lines += _rounds(one)
    if one.seconds is not None and one.hours_left is not None:
        lines.append(f"{one.seconds:.1f} s a trial; {one.hours_left:.1f} hours of one process for the rest of the grid")
    spread = noise(own)
    if spread is not None:
        lines.append(f"deviation between seeds: {100 * spread[0]:.2f} points over {spread[1]} points of the table")
    best = best_cells(own)
    if len(best):
        lines += ["", *best.to_string(float_format=lambda value: f"{value:.3f}").splitlines()]
    return lines


def write_card(folder: Path, table: pd.DataFrame, grid: list[PlannedTrial], setting: Setting) -> None:
    """README.md beside the table."""
    (folder / "README.md").write_text("\n".join(_card(folder, table, grid, setting)) + "\n", encoding="utf-8")


def _card(folder: Path, table: pd.DataFrame, grid: list[PlannedTrial], setting: Setting) -> list[str]:
    one = coverage(table, grid, setting)
    training, spread = setting.specification.training, noise(table[table["task"] == setting.task])
    state = "exhaustive" if one.done == one.planned else "**not exhaustive yet**"
    rates = "; ".join(f"{form} {', '.join(f'{rate:g}' for rate in some)}" for form, some in RATES.items())
    return [
        "---",
        "license: cc-by-4.0",
        "pretty_name: deltaspace table of trials",
        "---",
        f"# Table of trials: {setting.task}",
        "",
        "Delta configurations (parameter-efficient fine-tuning), each trained to the end: what a search could have",
        "found, so that ways to search are compared without training. `benchmarks/table.py` collects it with the",
        "system itself and continues it; the parts of several machines add up (`--part`, `--merge`).",
        "",
        "## How much is there",
        f"- `{setting.task}`, grid: {one.done:,} of {one.planned:,} rows ({one.done / one.planned:.1%}), {state};",
        f"  {one.cells} of {one.planned_cells} pairs of edits have at least one row",
        *_rounds(one),
        f"- drawn from the whole space: {one.drawn:,} rows",
        f"- failed trials among them: {one.failed}",
        *([] if spread is None else [f"- deviation between seeds: {100 * spread[0]:.2f} points ({spread[1]} points)"]),
        "",
        "## How it was made",
        f"Embedded backbone, {setting.space.budget:,} parameters ({setting.specification.budget}), {training.steps}",
        f"steps of {training.batch_size} examples of at most {setting.specification.task.max_tokens} tokens, head rate",
        f"{training.head_learning_rate:g}, all validation examples, no pruning. A trial is measured after 1/8, 1/4,",
        "1/2, 3/4 and all of its steps. Test data were not touched.",
        "",
        "*The grid* is every pair of an edit at attention, or none, and one at the FFN, or none:",
        "",
        f"- attention: none, {', '.join(ATTENTION_EDITS)}",
        f"- FFN: none, {', '.join(FFN_EDITS)}",
        f"- share of attention, where both have something to size: {', '.join(map(str, SHARES))}",
        f"- peak learning rates: {rates}; edits of one form on both sides have the same",
        f"- seeds {', '.join(map(str, SEEDS))}: an eighth of the points gets all of them at once",
        "",
        "A round is done before the next begins, in a fixed pseudo-random order: a part of it is an even sample.",
        "*Drawn* rows are uniform over structures, rates and shares of the whole space, with one seed.",
        "",
        f"## Columns of `{TRIALS}`",
        "| column | meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, (_, meaning) in COLUMNS.items()),
        "",
        *_examples(folder),
        "## Licence",
        "CC BY 4.0. Read it with `trial_table.rows.rows(folder)` or any reader of parquet.",
    ]


def _rounds(one: Coverage) -> list[str]:
    return [
        f"  - {words}: {done:,} of {count:,}" + (", all of them" if done == count else "")
        for words, (done, count) in zip(ROUNDS, one.rounds, strict=True)
    ]


def _examples(folder: Path) -> list[str]:
    if not (folder / EXAMPLES).is_file():
        return []
    return [
        f"`{EXAMPLES}` has what was measured example by example, by `key` and `step`: `losses` (half floats, the",
        "lowest byte first) and `correct` (a bit each, the highest first).",
        "",
    ]
