"""Corruptions of a ledger: every column of every table is changed in each way that its kind allows, and rows go."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import JSON, Column, Float, LargeBinary, Table
from sqlalchemy import Integer as Whole

from studies.ledger.tables import METADATA, UtcTime

LEFT_OUT = ("deltaspace_version", "calls")
PLANTED_IN = {
    "studies": "name = 'trivial'",
    "confirmations": "1",
    "trials": "study_id = 1 AND number = (SELECT min(number) FROM trials WHERE state = 'complete' AND method IS NULL)",
    "attempts": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1)",
    "readings": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1) AND step = 8",
    "examples": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1) AND step = 8",
    "artefacts": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1)",
    "events": "id = (SELECT min(id) FROM events)",
}
"""The row of each table that is changed."""

PRUNED = "study_id = 1 AND state = 'pruned' AND number = (SELECT max(number) FROM trials WHERE state = 'pruned')"
CONFIRMED = "study_id = 2 AND number = 1"


@dataclass(frozen=True)
class Damage:
    """A change to a ledger behind its back."""

    name: str
    statement: str

    def plant(self, whole: Path, file: Path) -> bool:
        """Copy a ledger and damage the copy; False if the statement changes nothing, or the database refuses it."""
        for end in ("", "-wal", "-shm"):  # a connection may still be open
            file.with_name(file.name + end).unlink(missing_ok=True)
        shutil.copy(whole, file)
        with closing(sqlite3.connect(file)) as link, link:
            link.text_factory = lambda text: text.decode(errors="surrogateescape")  # texts may be damaged, too
            link.execute("PRAGMA ignore_check_constraints = ON")
            link.execute("DROP TRIGGER IF EXISTS trials_are_final")
            before = list(link.iterdump())
            try:
                link.execute(self.statement)
            except (sqlite3.IntegrityError, sqlite3.OperationalError):
                return False
            return list(link.iterdump()) != before


def corruptions() -> Iterator[Damage]:
    """Yield every corruption."""
    for table in METADATA.sorted_tables:
        if table.name in LEFT_OUT:
            continue
        where = PLANTED_IN[table.name]
        for column in table.columns:
            for value in (*_values(table, column), "NULL"):
                yield _update(table.name, column.name, value, where)
        yield Damage(f"{table.name}: a row is gone", f"DELETE FROM {table.name} WHERE {where}")
    for name, value in {"reason": "'by hand'", "state": "'failed'", "origin": "'published'"}.items():
        yield _update("trials", name, value, PRUNED)
    for name in ("seed", "stored_parameters", "trained_parameters", "attention_share"):
        yield _update("trials", name, f"{name} * 0.5", CONFIRMED)
    for name in ("configuration", "proposal", "description"):
        yield _update("trials", name, f"(SELECT {name} FROM trials WHERE study_id = 1 AND number = 3)", CONFIRMED)
    yield Damage(
        "trials: the last of a confirmation is gone", "DELETE FROM trials WHERE id = (SELECT max(id) FROM trials)"
    )
    yield Damage("readings: of a complete trial are gone", f"DELETE FROM readings WHERE {PLANTED_IN['attempts']}")
    of_file = {"$.seed": "99", "$.task.metric": "'f1'", "$.budget": "'3%'", "$.trials": "99", "$.name": "'other'"}
    of_file |= {"$.search.sampler": "'random'", "$.training.steps": "17", "$.pruning.first_rung_steps": "2"}
    for path, value in of_file.items():
        yield Damage(
            f"studies.study_file: {path[2:]}",
            f"UPDATE studies SET specification = json_set(specification, '{path}', {value}) WHERE name = 'trivial'",
        )


def _update(table: str, column: str, value: str, where: str) -> Damage:
    return Damage(f"{table}.{column}: {value}", f"UPDATE {table} SET {column} = {value} WHERE {where}")


def _values(table: Table, column: Column) -> tuple[str, ...]:
    """Return SQL expressions of other values."""
    name = column.name
    other = f"(SELECT o.{name} FROM {table.name} AS o WHERE o.{name} IS NOT {table.name}.{name} LIMIT 1)"
    if isinstance(column.type, UtcTime):
        return ("'2001-01-01T00:00:00.000000+00:00'", "'2100-01-01T00:00:00.000000+00:00'")
    if isinstance(column.type, JSON):
        return ("'{}'", "'{\"edits\": 7}'", other)
    if isinstance(column.type, LargeBinary):
        return (f"zeroblob(length({name}))", f"substr({name}, 1, length({name}) - 2)")
    if isinstance(column.type, Whole):
        return (f"{name} + 1", f"{name} * 2 + 3")
    if isinstance(column.type, Float):
        return (f"{name} * 0.5 + 0.01", f"-{name} - 1")
    return ("'other'", other)
