"""Rows of the table and the parquet file that they are kept in."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from search_space.codec import configuration_to_json
from studies.records import ExampleRecord, ReadingRecord, SiteDimensions, TrialRecord
from trial_table.points import PlannedTrial
from trial_table.setting import CODE, EIGHTHS, Setting

TRIALS, EXAMPLES = "trials.parquet", "examples.parquet"
READINGS = tuple(f"{eighth}_8" for eighth in EIGHTHS)
"""Ends of the names of columns by reading: after how many eighths of the steps."""

_MEASURED = ("score", "validation_loss", "train_loss")
_SIDES = ("attention", "ffn")
_DIMENSIONS = tuple(one.name for one in fields(SiteDimensions))

COLUMNS: Mapping[str, tuple[pa.DataType, str]] = {
    "key": (pa.string(), "what two machines call the same trial: a digest of all that it depends on"),
    "task": (pa.string(), "what is learned"),
    "part": (pa.string(), "`exhaustive`, of the grid, or `drawn`, from the whole space"),
    "attention": (pa.string(), "name of the grid's edit at attention"),
    "ffn": (pa.string(), "the same at the FFN"),
    "seed": (pa.int64(), "of initialisation, data order and dropout; equal seeds have equal data order"),
    "state": (pa.string(), "`complete` or `failed`"),
    "score": (pa.float64(), "the task's metric on the validation split after the last step"),
    **{
        f"{name}_{end}": (pa.float32(), f"{name.replace('_', ' ')} after {end[0]} eighths of the steps")
        for end in READINGS
        for name in _MEASURED
    },
    "seconds": (pa.float32(), "of computing, evaluations included"),
    "reason": (pa.string(), "why it failed"),
    "stored_parameters": (pa.int64(), "that are added, the task head aside"),
    "trained_parameters": (pa.int64(), "the same while training"),
    "head_parameters": (pa.int64(), "of the task head"),
    "attention_share": (pa.float32(), "of the stored parameters, at attention"),
    **{
        f"{side}_{name}": (
            pa.float64() if name in ("bottleneck", "scale", "learning_rate") else pa.string(),
            f"{name.replace('_', ' ')} of the edits at {'attention' if side == 'attention' else 'the FFN'}",
        )
        for side in _SIDES
        for name in _DIMENSIONS
    },
    "description": (pa.string(), "one phrase for people"),
    "configuration": (pa.string(), "the whole configuration as JSON"),
    "proposal": (pa.string(), "the parameters of the search space that propose it, as JSON"),
    "fingerprint": (pa.string(), "of configuration and rates"),
    "steps": (pa.int64(), "optimiser steps"),
    "backbone_sha256": (pa.string(), "of the frozen weights"),
    "code": (pa.int64(), "raised whenever training changes so that trials come out otherwise"),
    "commit": (pa.string(), "of the code"),
    "precision": (pa.string(), "of the matrix products"),
    "machine": (pa.string(), "the processor or accelerator"),
    "ended_at": (pa.timestamp("us", tz="UTC"), "when"),
}
"""By name: type and meaning."""

_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
_EXAMPLE_SCHEMA = pa.schema(
    [("key", pa.string()), ("step", pa.int64()), ("losses", pa.binary()), ("correct", pa.binary())]
)

Row = Mapping[str, Any]


def rows(folder: Path | str) -> pd.DataFrame:
    """The table in a folder, a row a trial; empty where there is none yet."""
    file = Path(folder) / TRIALS
    return (pq.read_table(file) if file.is_file() else _SCHEMA.empty_table()).to_pandas()


def read_rows(file: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if it is not there."""
    return pq.read_table(file).to_pylist() if file.is_file() else []


def write_rows(folder: Path, found: Iterable[Row]) -> None:
    """Keep rows, one for each key, in the order of the keys: whatever came first, the file is the same."""
    kept = merged(found)
    _write(folder / TRIALS, pa.Table.from_pylist([dict(row) for row in kept], schema=_SCHEMA))


def merged(found: Iterable[Row]) -> list[Row]:
    """One row for each key: a complete one before a failed one, then the one that was measured first."""
    best: dict[str, Row] = {}
    for row in found:
        key = row["key"]
        best[key] = row if key not in best else min(best[key], row, key=_rank)
    return [best[key] for key in sorted(best)]


def _rank(row: Row) -> tuple[bool, str, str]:
    return row["state"] != "complete", str(row["ended_at"]), json.dumps(dict(row), default=str, sort_keys=True)


def write_examples(folder: Path, found: Iterable[Row]) -> None:
    """Keep what was measured example by example, beside what the file has; nothing where there is nothing."""
    file = folder / EXAMPLES
    best = {(row["key"], row["step"]): row for row in [*found, *read_rows(file)]}
    if best:
        _write(file, pa.Table.from_pylist([best[key] for key in sorted(best)], schema=_EXAMPLE_SCHEMA))


def _write(file: Path, table: pa.Table) -> None:
    """The whole file or the one before."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    pq.write_table(table, temporary, compression="zstd", compression_level=12)
    temporary.replace(file)


def row_of(
    trial: TrialRecord,
    readings: Sequence[ReadingRecord],
    *,
    setting: Setting,
    plan: PlannedTrial | None,
    facts: Mapping[str, str | None],
) -> Row:
    """An ended trial of the ledger as a row.

    Args:
        trial: It.
        readings: Its.
        setting: Of the table.
        plan: What it was planned as; None if that is not known any more.
        facts: The machine's: ``commit``, ``precision``, ``machine``.
    """
    sides = {"attention": trial.attention, "ffn": trial.ffn}
    return {
        "key": key_of(trial, setting),
        "task": setting.task,
        "part": None if plan is None else plan.part,
        "attention": None if plan is None else plan.attention,
        "ffn": None if plan is None else plan.ffn,
        "state": trial.state.value,
        **_measured(readings, setting),
        "seconds": sum(one.seconds for one in readings),
        **{f"{side}_{name}": _plain(getattr(sides[side], name, None)) for side in _SIDES for name in _DIMENSIONS},
        "configuration": json.dumps(configuration_to_json(trial.configuration)),
        "proposal": json.dumps(trial.proposal),
        "fingerprint": trial.fingerprint.partition(":")[0],
        "steps": setting.specification.training.steps,
        "backbone_sha256": setting.backbone_sha256,
        "code": CODE,
        **{name: facts.get(name) for name in ("commit", "precision", "machine")},
        **{name: getattr(trial, name) for name in _OF_TRIAL},
    }


_OF_TRIAL = (
    "seed",
    "score",
    "reason",
    "stored_parameters",
    "trained_parameters",
    "head_parameters",
    "attention_share",
    "description",
    "ended_at",
)


def key_of(trial: TrialRecord, setting: Setting) -> str:
    """The key of a trial of the ledger, whose fingerprint has the seed behind it."""
    rates = tuple(None if side is None else side.learning_rate for side in (trial.attention, trial.ffn))
    return setting.key(trial.fingerprint.partition(":")[0], (rates[0], rates[1]), trial.seed)


def example_row(record: ExampleRecord, key: str) -> Row:
    return {"key": key, "step": record.step, "losses": record.losses, "correct": record.correct}


def _measured(readings: Sequence[ReadingRecord], setting: Setting) -> dict[str, float | None]:
    by_step = {one.step: one for one in readings}
    columns: dict[str, float | None] = {}
    for eighth, end in zip(EIGHTHS, READINGS, strict=True):
        one = by_step.get(max(1, setting.specification.training.steps * eighth // 8))
        values = (None, None, None) if one is None else (one.score, one.metrics.get("validation_loss"), one.train_loss)
        columns |= {f"{name}_{end}": _finite(value) for name, value in zip(_MEASURED, values, strict=True)}
    return columns


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _plain(value: object) -> object:
    """A word or a number, for dimensions that are values of an enumeration."""
    return value if value is None or isinstance(value, int | float) else str(value)
