"""Corruptions of a ledger: every column of every table is changed in each way that its kind allows, and rows go."""

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sqlalchemy import JSON, Column, Float, LargeBinary, Table
from sqlalchemy import Integer as Whole

from studies.ledger.tables import METADATA, UtcTime
from studies.ledger.views import VIEWS

LEFT_OUT = ("deltaspace_version", "calls")
PLANTED_IN = {
    "studies": "name = 'trivial'",
    "confirmations": "study_id = (SELECT min(study_id) FROM confirmations)",
    "trials": "study_id = 1 AND number = (SELECT min(number) FROM trials WHERE state = 'complete' AND method IS NULL)",
    "attempts": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1)",
    "readings": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1) AND step = 8",
    "examples": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1) AND step = 8",
    "artefacts": "trial_id = (SELECT id FROM trials WHERE state = 'complete' AND method IS NULL LIMIT 1)",
    "events": "id = (SELECT min(id) FROM events)",
}
"""The row of each table that is changed."""

_LAST = "study_id = 1 AND number = (SELECT max(number) FROM trials WHERE study_id = 1 AND {})"
PRUNED = _LAST.format("reason LIKE '%below%'")
WENT_ON = _LAST.format("state = 'complete' AND method IS NULL AND replicate_of IS NULL")
AGAINST_RULE = {"rung 1": "rung 0", "steps): 0": "steps): 1", "below 0": "below 1", " others": "0 others"}
"""Parts of the reason of a pruned trial, and others with which the rule does not stop it."""

CONFIRMED = "study_id = 2 AND number = 1"
STEP = "study_id = 3 AND number = 2"
"""The first training of the last step before the end of the path, where two are trained of each."""

FILE_KEYS = {
    "budget": "'3%'",
    "name": "'other'",
    "pruning.first_rung_steps": "2",
    "pruning.rule": "'none'",
    "search.replicates": "1",
    "search.sampler": "'random'",
    "seed": "99",
    "space.max_extra_flops": "1000000000",
    "task.max_length": "64",
    "task.metric": "'f1'",
    "training.batch_size": "3",
    "training.precision": "'fp32'",
    "training.steps": "17",
    "training.warmup_fraction": "0.2",
    "training.weight_decay": "0.3",
    "trials": "99",
}
"""Keys of a study file, and other values."""


@dataclass(frozen=True)
class Damage:
    """A change to a ledger behind its back.

    Attributes:
        name: The column, and the change.
        statement: What is run; several are parted by semicolons.
        of_file: What is done to the file and its folder beside that.
    """

    name: str
    statement: str = ""
    of_file: Callable[[Path], object] | None = None

    def plant(self, whole: Path, file: Path) -> bool:
        """Copy a ledger and damage the copy; False if the statement changes nothing, or the database refuses it."""
        for end in ("", "-wal", "-shm"):  # a connection may still be open
            file.with_name(file.name + end).unlink(missing_ok=True)
        shutil.copy(whole, file)
        with closing(sqlite3.connect(file)) as link, link:
            link.text_factory = lambda text: text.decode(errors="surrogateescape")  # texts may be damaged, too
            link.execute("PRAGMA ignore_check_constraints = ON")
            trigger = link.execute("SELECT sql FROM sqlite_master WHERE name = 'trials_are_final'").fetchone()
            link.execute("DROP TRIGGER IF EXISTS trials_are_final")
            before = list(link.iterdump())
            try:
                for statement in self.statement.split(";"):
                    link.execute(statement)
            except (sqlite3.IntegrityError, sqlite3.OperationalError):
                return False
            is_changed = self.of_file is not None or list(link.iterdump()) != before
            if trigger is not None:
                link.execute(*trigger)
        if self.of_file is not None:
            self.of_file(file)
        return is_changed


def corruptions() -> Iterator[Damage]:
    """Yield all of them, of a ledger that holds a search, a confirmation of it, and an ablation."""
    yield from _of_columns()
    for name, value in {"reason": "'by hand'", "state": "'failed'", "origin": "'published'"}.items():
        yield _update("trials", name, value, PRUNED, "of a pruned trial")
    for old, new in AGAINST_RULE.items():
        yield _update("trials", "reason", f"replace(reason, '{old}', '{new}')", PRUNED, "of a pruned trial")
    yield _at_a_rung("a pruned trial has the best ones", PRUNED, "max")
    yield _at_a_rung("a trial that went on has the worst ones", WENT_ON, "min")
    for where, of in ((CONFIRMED, "of a confirmation"), (STEP, "of a step")):
        for name in ("seed", "stored_parameters", "trained_parameters", "attention_share", "attention_learning_rate"):
            yield _update("trials", name, f"{name} * 0.5", where, of)
        for name in ("configuration", "proposal", "description", "fingerprint", "attention_form", "ffn_form"):
            other = f"(SELECT {name} FROM trials AS o WHERE study_id = 1 AND o.{name} IS NOT trials.{name} LIMIT 1)"
            yield _update("trials", name, other, where, of)
    both = "configuration = (SELECT configuration FROM trials WHERE study_id = 1 AND number = 3)"
    yield Damage(
        "trials.configuration: another in all trials of a step",
        f"UPDATE trials SET {both} WHERE study_id = 3 AND number IN (2, 3)",
    )
    for study, of in ((1, "search, a replicate"), (2, "confirmation"), (3, "ablation")):
        yield Damage(f"trials: the last of the {of}, with all that is its own", _without(study))
    yield Damage("trials: the last two of the search, with all that is their own", f"{_without(1)}; {_without(1)}")
    yield Damage("readings: of a complete trial are gone", f"DELETE FROM readings WHERE {PLANTED_IN['attempts']}")
    yield from _of_confirmations()
    yield from _of_examples()
    for path, value in FILE_KEYS.items():
        for study in ("trivial", "trivial-confirm"):
            changed = f"json_set(specification, '$.{path}', {value})"
            yield Damage(
                f"studies.specification: {path} of {study}",
                f"UPDATE studies SET specification = {changed} WHERE name = '{study}'",
            )
    yield from _of_schema()
    yield from _of_folder()


def _of_columns() -> Iterator[Damage]:
    """Yield other values of every column, and rows that are gone."""
    for table in METADATA.sorted_tables:
        if table.name in LEFT_OUT:
            continue
        where = PLANTED_IN[table.name]
        for column in table.columns:
            for value in (*_values(table, column), "NULL"):
                yield _update(table.name, column.name, value, where)
        yield Damage(f"{table.name}: a row is gone", f"DELETE FROM {table.name} WHERE {where}")


def _of_confirmations() -> Iterator[Damage]:
    """Yield changes of requests and contenders of a confirmation and an ablation."""
    values = {
        "label": ("'other'",),
        "trial": ("1", "NULL"),
        "validation_score": ("0.123", "NULL"),
        "is_top": ("json('false')", "json('true')"),
        "baselines": ("json('[]')", "json('[\"bitfit\"]')"),
        "change": ("'other'", "NULL"),
        "comparison": ("NULL", "json('{}')"),
        "comparison.difference": ("0.5",),
        "comparison.verdict": ("'beats'", "'loses'"),
        "comparison.pairs": ("1",),
    }
    for study, of in ((2, "confirmation"), (3, "ablation")):
        for place in (0, 1, 2):
            for key, others in values.items():
                for value in others:
                    changed = f"json_set(contenders, '$[{place}].{key}', {value})"
                    yield _update("confirmations", "contenders", changed, f"study_id = {study}", f"{key} of the {of}")
        for name, others in {"top": ("top + 1", "top + 9"), "most_parameters": ("1000000000", "1")}.items():
            for value in others:
                yield _update("confirmations", name, value, f"study_id = {study}", f"of the {of}")
        for name, value in {"seeds": "'[1, 2]'", "against": "'[\"lora_qv\"]'", "left_out": '\'{"ia3": "no"}\''}.items():
            yield _update("confirmations", name, value, f"study_id = {study}", f"of the {of}")


def _at_a_rung(name: str, where: str, extreme: str) -> Damage:
    """Return a trial with the readings and examples of another one at a rung: only the decision there differs."""
    changed, of_study = f"(SELECT id FROM trials WHERE {where})", "(SELECT id FROM trials WHERE study_id = 1)"
    other = f"(SELECT trial_id, {extreme}(score) FROM readings WHERE step = 8 AND trial_id IN {of_study})"
    columns = {"examples": "losses, correct", "readings": "score, metrics, train_loss"}
    copied = [
        f"UPDATE {table} SET ({names}) = (SELECT {names} FROM {table} WHERE step = 8 AND trial_id = "
        f"(SELECT trial_id FROM {other})) WHERE step = 8 AND trial_id = {changed}"
        for table, names in columns.items()
    ]
    last = "(SELECT score FROM readings WHERE trial_id = trials.id ORDER BY step DESC LIMIT 1)"
    return Damage(
        f"readings: at a rung {name}", "; ".join([*copied, f"UPDATE trials SET last_score = {last} WHERE {where}"])
    )


def _of_examples() -> Iterator[Damage]:
    """Yield examples that are gone, or of others."""
    of_trial = PLANTED_IN["attempts"]
    for name, where in {
        "of a trial": of_trial,
        "of a step": "step = 8",
        "of the search": "trial_id IN (SELECT id FROM trials WHERE study_id = 1)",
        "of the confirmation": "trial_id IN (SELECT id FROM trials WHERE study_id = 2)",
        "of all": "1",
    }.items():
        yield Damage(f"examples: those {name} are gone", f"DELETE FROM examples WHERE {where}")
    shuffled = "(SELECT losses FROM examples AS o WHERE o.step = 4 AND o.trial_id != examples.trial_id LIMIT 1)"
    yield _update("examples", "losses", shuffled, f"{of_trial} AND step = 4", "of another trial")
    yield _update("examples", "correct", "substr(correct, 2) || substr(correct, 1, 1)", of_trial, "turned")
    turned = "CAST(substr(losses, 3) || substr(losses, 1, 2) AS BLOB)"
    yield _update("examples", "losses", turned, of_trial, "turned")


def _of_schema() -> Iterator[Damage]:
    """Yield views that return other numbers, and rules of the database that are gone or added."""
    for view in VIEWS:
        columns = re.findall(r"^ {8}(\w+): ", VIEWS[view].__doc__ or "", re.MULTILINE)
        select = ", ".join(f"NULL AS {name}" for name in columns)
        yield Damage(
            f"schema: view {view} returns other values",
            f"DROP VIEW {view}; CREATE VIEW {view} AS SELECT {select}",
        )
    yield Damage("schema: a view is gone", "DROP VIEW leaderboard")
    for index in ("ix_trials_study_id", "ix_events_study_id", "uq_attempts_one_open", "uq_attempts_one_final"):
        yield Damage(f"schema: index {index} is gone", f"DROP INDEX {index}")
    triggers = {"the trigger of final trials is gone": "DROP TRIGGER trials_are_final"}
    for table in ("trials", "readings"):
        triggers[f"a trigger of {table} is added"] = (
            f"CREATE TRIGGER odd AFTER INSERT ON {table} BEGIN DELETE FROM events; END"
        )
    for name, script in triggers.items():
        yield Damage(f"schema: {name}", of_file=partial(_run, script))
    yield Damage("schema: an index is added", "CREATE UNIQUE INDEX odd ON readings (score)")
    for table in ("trials", "attempts", "confirmations"):
        yield Damage(
            f"schema: the checks of {table} are gone",
            f"PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'CHECK (', 'CHECK (1 OR ') "
            f"WHERE name = '{table}'",
        )
    yield Damage("schema: a column is added", "ALTER TABLE trials ADD COLUMN odd INTEGER")


def _run(script: str, file: Path) -> None:
    with closing(sqlite3.connect(file)) as link, link:
        link.executescript(script)


def _of_folder() -> Iterator[Damage]:
    """Yield files, links and folders in the study's folder that no record names, and its marker."""

    def folder(file: Path) -> Path:
        return file.parent / "artefacts" / "trivial"

    def attempt(file: Path) -> Path:
        return next(folder(file).glob("trial-*/attempt-*"))

    def write(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")

    def marked(file: Path) -> None:
        marker = folder(file) / "study.json"
        marker.write_text(json.dumps({**json.loads(marker.read_text()), "created_at": "2001-01-01"}))

    places: dict[str, Callable[[Path], object]] = {
        "a file": lambda file: write(folder(file) / "odd.json"),
        "a file of an attempt": lambda file: write(attempt(file) / "odd.json"),
        "a file of a trial that is none": lambda file: write(folder(file) / "trial-99" / "attempt-1" / "odd.json"),
        "a folder": lambda file: (folder(file) / "odd").mkdir(),
        "a link": lambda file: (folder(file) / "odd").symlink_to("/etc"),
        "a link of an attempt": lambda file: (attempt(file) / "odd").symlink_to("/etc/hosts"),
        "a pipe": lambda file: os.mkfifo(attempt(file) / "odd"),
        "another marker": marked,
        "no marker": lambda file: (folder(file) / "study.json").unlink(),
        "a file of a record is a link": _link,
        "a file of a record is cut": lambda file: next(attempt(file).iterdir()).write_text(""),
    }
    for name, change in places.items():
        yield Damage(f"folder: {name}", of_file=change)


def _link(file: Path) -> None:
    """Replace a file by a link to the same content."""
    path = next((file.parent / "artefacts" / "trivial").glob("trial-*/attempt-*/*"))
    path.rename(file.parent / "elsewhere.json")
    path.symlink_to(file.parent / "elsewhere.json")


def _without(study: int) -> str:
    """Return statements that delete the last trial of a study and all that is its own."""
    last = f"(SELECT id FROM trials WHERE study_id = {study} ORDER BY number DESC LIMIT 1)"
    number = f"(SELECT max(number) FROM trials WHERE study_id = {study})"
    of_trial = [
        f"DELETE FROM {table} WHERE trial_id = {last}" for table in ("examples", "readings", "artefacts", "attempts")
    ]
    events = f"DELETE FROM events WHERE study_id = {study} AND trial = {number}"
    return "; ".join([*of_trial, events, f"DELETE FROM trials WHERE id = {last}"])


def _update(table: str, column: str, value: str, where: str, of: str = "") -> Damage:
    return Damage(
        f"{table}.{column}: {of}{' ' if of else ''}{value}", f"UPDATE {table} SET {column} = {value} WHERE {where}"
    )


def _values(table: Table, column: Column) -> tuple[str, ...]:
    """Return expressions of other values."""
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
