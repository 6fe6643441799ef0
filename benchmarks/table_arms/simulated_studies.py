"""Searches compared by studies that are simulated on tables; a file keeps the studies, so that none is run again."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock
from search_arms.intervals import table_line, with_interval
from search_arms.simulation import simulate

from table_arms.files import read_frame, write_frame
from table_arms.pruning import Table
from table_arms.searches import ARMS, FACTORED, LORA, plan_of
from table_arms.truth import TableTask, TableTruth

FULL_TRIALS = (20, 40, 80)
"""Full trials whose steps a study has spent when a configuration is recommended."""

_BEHIND_FACTORED = f"{FACTORED} less it"
_DIGITS = 3


def simulate_missing(path: Path, tables: Sequence[Table], settings: Mapping[str, int], studies: int) -> None:
    """Run the studies that a file lacks, one search on all tables after the other; each is added when it ends.

    Several processes can add to one file, each for other tables.

    Args:
        path: File.
        tables: Tables.
        settings: Settings of their rows.
        studies: Studies of each search and table.

    Raises:
        SystemExit: If studies in the file are of a table with another number of rows, or it is no parquet file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for table in tables:
        for other in {row["table_rows"] for row in studies_of(path, table)} - {len(table.rows)}:
            raise SystemExit(
                f"{path} must have studies of the {len(table.rows)} rows of {table.task} {table.share}; "
                f"got some of {other} rows. Choose another file."
            )
    for name in ARMS:
        for table in tables:
            done = {row["seed"] for row in studies_of(path, table) if row["search"] == name}
            for row in new_studies(table, settings, name, [seed for seed in range(studies) if seed not in done]):
                with FileLock(f"{path}.lock"):
                    write_frame(path, pd.DataFrame([*_read(path), row]))


def new_studies(
    table: Table, settings: Mapping[str, int], search: str, seeds: Sequence[int]
) -> Iterator[dict[str, Any]]:
    """Run studies of a search and yield their rows, in points."""
    if not seeds:
        return
    truth = TableTruth(table, settings)
    plan = plan_of(ARMS[search], truth)
    for seed in seeds:
        task = TableTask(truth=truth, seed=seed)
        found = simulate(plan, task, checkpoints=FULL_TRIALS, in_steps=True).recommended
        points = {f"after {count}": one.truth for count, one in zip(FULL_TRIALS, found, strict=True)}
        points |= {"smallest": found[-1].smallest_truth, "explained": truth.explained}
        yield {
            "task": table.task,
            "budget": table.share,
            "table_rows": len(table.rows),
            "search": search,
            "seed": seed,
            **{name: round(value, _DIGITS) for name, value in points.items()},
            "parameters": found[-1].parameters,
            "smallest_parameters": found[-1].smallest_parameters,
        }


def studies_of(path: Path, table: Table) -> list[dict[str, Any]]:
    """Return the studies of a table in a file; none if it does not exist."""
    return [row for row in _read(path) if (row["task"], row["budget"]) == (table.task, table.share)]


def search_lines(path: Path, tables: Sequence[Table]) -> Iterator[str]:
    """Yield a line for each table and search: true scores of recommendations on test in points, with 95% intervals.

    Differences are to LoRA, paired by seed: only studies with a seed that LoRA has, too, count. The smallest
    configuration is that of the verdict after the last trial. The last column is the difference of the search as
    shipped to another one then, by the seeds that it has, too. Means over tables follow.
    """
    columns = " | ".join(f"after {count} | less LoRA" for count in FULL_TRIALS)
    of_last = f"parameters | smallest | less LoRA | {_BEHIND_FACTORED}"
    yield f"| task | budget | explained | search | studies | {columns} | {of_last} |"
    yield f"|---|---|--:|---|--:|{'--:|' * (2 * len(FULL_TRIALS) + 4)}"
    means: dict[str, list[pd.Series]] = {name: [] for name in ARMS}
    for table in tables:
        studies = studies_of(path, table)
        for name in ARMS:
            points = _paired_with_lora(studies, name)
            if len(points):
                means[name].append(points.mean())
                sizes = [f"{points[size].median():,.0f}" for size in ("parameters", "smallest_parameters")]
                cells = [table.task, table.share, f"{points['explained'].iloc[0]:.2f}", name, len(points)]
                yield table_line([*cells, *_score_cells(points, name), *sizes, *_last_cells(points)])
    for name, of_tables in means.items():
        if len(of_tables) > 1:
            points = pd.DataFrame(of_tables)
            cells = ["all", f"{len(points)} tables", "", name, "", *_score_cells(points, name), "", ""]
            yield table_line([*cells, *_last_cells(points)])


def _read(path: Path) -> list[dict[str, Any]]:
    return read_frame(path).to_dict("records")


def _paired_with_lora(studies: Sequence[Mapping[str, Any]], search: str) -> pd.DataFrame:
    """Return the numbers of the studies of a search, by seed, with the differences to LoRA and to the shipped one."""
    lora, factored, own = (_points(studies, name) for name in (LORA, FACTORED, search))
    own, last = own.loc[own.index.intersection(lora.index)].copy(), f"after {FULL_TRIALS[-1]}"
    for column in [name for name in own if name.startswith("after") or name == "smallest"]:
        own[f"{column} less LoRA"] = own[column] - lora[last if column == "smallest" else column]
    if search not in (LORA, FACTORED) and len(own) and len(factored):
        own[_BEHIND_FACTORED] = factored[last] - own[last]
    return own


def _points(studies: Sequence[Mapping[str, Any]], search: str) -> pd.DataFrame:
    """Return the numbers of the studies of a search, by seed."""
    rows = [row for row in studies if row["search"] == search]
    return pd.DataFrame(rows).set_index("seed").sort_index().select_dtypes("number") if rows else pd.DataFrame()


def _score_cells(points: pd.DataFrame, search: str) -> list[str]:
    """Return the mean after each number of trials, each with its difference to LoRA."""
    gaps = ["" if search == LORA else with_interval(points[f"after {count} less LoRA"]) for count in FULL_TRIALS]
    means = [f"{points[f'after {count}'].mean():.2f}" for count in FULL_TRIALS]
    return [cell for both in zip(means, gaps, strict=True) for cell in both]


def _last_cells(points: pd.DataFrame) -> list[str]:
    """Return the difference of the smallest trial to LoRA, and that of the search as shipped to this one."""
    behind = points[_BEHIND_FACTORED].dropna() if _BEHIND_FACTORED in points else ()
    return [with_interval(points["smallest less LoRA"]), with_interval(behind) if len(behind) else ""]
