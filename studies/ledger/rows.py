"""Conversion of records to rows and back. A query selects the fields of its record by name, see `columns_of`."""

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import JSON, ColumnElement, Float, Integer, LargeBinary, Result, Row, String, Table, Text, cast
from sqlalchemy.types import TypeEngine

from search_space.codec import configuration_from_json, configuration_to_json
from search_space.configuration import Configuration
from search_space.errors import CodecError
from search_space.json_text import read_json_text
from search_space.words.dimensions import SideDimensions
from studies.errors import DamagedError
from studies.ledger.files import found_folder
from studies.ledger.tables import CONFIRMATIONS, READINGS, STUDIES, TRIALS, UtcTime
from studies.records.study import ConfirmationRecord, StudyKind, StudyRecord
from studies.records.trial import PROPOSED, TrialOutline, TrialRecord, TrialState
from trial_runner.requests import Reading

Word = TypeVar("Word", bound=StrEnum)

_LARGEST = 1e308
_SHOWN = 60

_SITES = ("attention", "ffn")
_CONFIGURATIONS = 2**15
"""Number of cached configurations, since many trials share theirs and are read again."""
_DIMENSIONS = tuple(field.name for field in fields(SideDimensions))
_dimensions_of = attrgetter(*_DIMENSIONS)
_SITE_COLUMNS = {site: tuple(f"{site}_{name}" for name in _DIMENSIONS) for site in _SITES}
_PLAIN: Mapping[Any, tuple[str, ...]] = {
    record: tuple(field.name for field in fields(record) if field.name not in _SITES)
    for record in (TrialRecord, TrialOutline)
}
"""Fields with a column of their name."""
_TRIAL_COLUMNS = {record: (*names, *chain(*_SITE_COLUMNS.values())) for record, names in _PLAIN.items()}
_FFN = slice(-len(_DIMENSIONS), None)
_ATTENTION = slice(-2 * len(_DIMENSIONS), -len(_DIMENSIONS))


AnyTrial = TypeVar("AnyTrial", TrialRecord, TrialOutline)
_CONFIRMATION = TypeAdapter(ConfirmationRecord)
_LISTS = ("against", "seeds", "contenders")
_KINDS: tuple[tuple[type[TypeEngine[Any]], tuple[type, ...]], ...] = (
    (Integer, (int,)),
    (Float, (float, int)),
    (JSON, (dict,)),
    (LargeBinary, (bytes,)),
    (UtcTime, (datetime,)),
    (String, (str,)),
)
_checked: set[tuple[str, tuple[str, ...], tuple[type, ...]]] = set()


def named_rows(found: Result[Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query as values by column."""
    names = tuple(found.keys())
    return (dict(zip(names, row, strict=True)) for row in found)


def checked_row(row: dict[str, Any], table: Table) -> dict[str, Any]:
    """Return a row after `check_values`."""
    check_values(tuple(row), row.values(), table)
    return row


def check_values(names: tuple[str, ...], values: Collection[object], table: Table) -> None:
    """Check the types of a row's values; SQLite accepts a text or infinity in a numeric column.

    Raises:
        DamagedError: If a value has another type.
    """
    key = (table.name, names, tuple(map(type, values)))
    if key not in _checked:
        for name, kind in zip(*key[1:], strict=True):
            if not issubclass(kind, _kinds(table, name)):
                raise DamagedError.of(f"another kind of value in '{name}'", TypeError(f"of type {kind.__name__}"))
        _checked.add(key)
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise DamagedError.of("finite numbers", ValueError(f"got {value}"))


def _kinds(table: Table, name: str) -> tuple[type, ...]:
    """Return the permitted types of a column, or of one that a query adds."""
    if name == "configuration":
        return (str, dict)  # read as text, see `trial_columns`, and copied unchanged
    if name not in table.c:
        return (int,) if name == "trial" else (str,)
    column = table.c[name]
    kinds = (list,) if name in _LISTS else next(kinds for kind, kinds in _KINDS if isinstance(column.type, kind))
    return (*kinds, type(None)) if column.nullable else kinds


def columns_of(record: Any, table: Table) -> list[ColumnElement[Any]]:
    """Return the columns of a record's visible fields, and the trial number of a row."""
    names = [field.name for field in fields(record) if field.repr]
    return [
        TRIALS.c.number.label(name) if name == "trial" and "trial_id" in table.c else table.c[name] for name in names
    ]


def clean(text: str) -> str:
    """Return a text without NUL and half surrogates, which both databases accept."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")


def word_of(words: type[Word], text: str) -> Word:
    """Return the member of an enumeration.

    Raises:
        DamagedError: If the text is none of them.
    """
    try:
        return words(text)
    except ValueError as error:
        raise DamagedError.of(f"one of {', '.join(words)}", error) from error


def study_from_row(row: dict[str, Any], home: Path | None) -> StudyRecord:
    """Return the study of a row, in a database file of some folder."""
    if not isinstance(row["specification"], dict):
        raise DamagedError.of("a study file", TypeError(f"of type {type(row['specification']).__name__}"))
    checked_row(row, STUDIES)
    values = {field.name: row[field.name] for field in fields(StudyRecord)}
    folder = found_folder(row["folder"], row["name"], home)
    return StudyRecord(**{**values, "kind": word_of(StudyKind, row["kind"]), "folder": folder})


def confirmation_from_row(row: dict[str, Any]) -> ConfirmationRecord:
    """Return the confirmation of a row with the name of its study."""
    values = {name: value for name, value in checked_row(row, CONFIRMATIONS).items() if name != "study_id"}
    try:
        confirmation = _CONFIRMATION.validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise DamagedError.of("the request of a confirmation", error) from error
    if not confirmation.contenders or not confirmation.seeds:
        raise DamagedError.of("contenders and seeds of a confirmation", ValueError("none"))
    return confirmation


def trial_to_row(trial: TrialRecord) -> dict[str, Any]:
    """Return the columns of ``trials`` that the proposal determines."""
    row = {name: getattr(trial, name) for name in PROPOSED if name not in _SITES}
    for site, columns in _SITE_COLUMNS.items():
        dimensions: SideDimensions | None = getattr(trial, site)
        values = (None,) * len(columns) if dimensions is None else _dimensions_of(dimensions)
        row |= zip(columns, values, strict=True)
    return row | {"configuration": configuration_to_json(trial.configuration), "proposal": dict(trial.proposal)}


def trial_columns(record: type[AnyTrial]) -> list[ColumnElement[Any]]:
    """Return the columns that `trial_from_row` reads, in its order: the configuration as text, dimensions last."""
    return [
        cast(TRIALS.c[name], Text).label(name) if name == "configuration" else TRIALS.c[name]
        for name in _TRIAL_COLUMNS[record]
    ]


def trial_from_row(row: Row[Any], record: type[AnyTrial]) -> AnyTrial:
    """Return the trial of a row of `trial_columns`."""
    check_values(_TRIAL_COLUMNS[record], row, TRIALS)
    values: dict[str, Any] = dict(zip(_PLAIN[record], row, strict=False))
    values["state"] = word_of(TrialState, values["state"])
    values |= {"attention": _site(row[_ATTENTION]), "ffn": _site(row[_FFN])}
    if record is TrialRecord:
        values["configuration"] = _configuration(values["configuration"])
        _check_proposal(values["proposal"])
    return record(**values)


@lru_cache(maxsize=_CONFIGURATIONS)
def _configuration(text: str | None) -> Configuration:
    """Return a parsed configuration.

    Raises:
        DamagedError: If the text is not a configuration.
    """
    try:
        return configuration_from_json(read_json_text(text or ""))
    except (CodecError, ValueError, TypeError) as error:
        raise DamagedError.of("a configuration", error) from error


def _check_proposal(proposal: Mapping[str, Any]) -> None:
    """Check that a proposal contains no lists, no infinite numbers and no invalid learning rates.

    Raises:
        DamagedError: If it does.
    """
    for name, value in proposal.items():
        is_number = isinstance(value, int | float) and abs(value) <= _LARGEST
        if not (is_number and value > 0 if "learning_rate" in name else is_number or isinstance(value, str | None)):
            raise DamagedError.of("a proposal", ValueError(f"'{name[:_SHOWN]}' is {str(value)[:_SHOWN]}"))


@lru_cache(maxsize=_CONFIGURATIONS)
def _site(values: tuple[Any, ...]) -> SideDimensions | None:
    named = dict(zip(_DIMENSIONS, values, strict=True))
    return None if named["form"] is None else SideDimensions(**named)


def reading_to_row(reading: Reading, trial_id: int) -> dict[str, Any]:
    """Return a reading as a row; metrics that are not finite become null, since JSON has no NaN."""
    row = {name: getattr(reading, name) for name in READINGS.c.keys() if name != "trial_id"}  # noqa: SIM118
    metrics = {name: float(value) if math.isfinite(value) else None for name, value in reading.metrics.items()}
    numbers = {name: float(row[name]) for name in ("score", "train_loss", "seconds")}
    return {**row, **numbers, "trial_id": trial_id, "metrics": metrics}


def reading_from_row(row: dict[str, Any]) -> Reading:
    """Return the reading of a row with the trial's number; a metric of null is NaN."""
    try:
        metrics = {name: math.nan if value is None else float(value) for name, value in row["metrics"].items()}
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DamagedError.of("numbers in 'metrics'", error) from error
    return Reading(**checked_row(row, READINGS) | {"metrics": metrics})
