"""Copies of whole studies from one database to another, of any kind.

Keys are new, everything else is equal; holds are not copied. Both functions work inside transactions of the caller, so
a copy is one consistent state even while a launch writes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Any

from sqlalchemy import Connection, Table, insert, select

from studies.ledger import reads
from studies.ledger.database import home_of
from studies.ledger.files import written_folder
from studies.ledger.rows import checked_row, named_rows
from studies.ledger.tables import ARTEFACTS, ATTEMPTS, CONFIRMATIONS, EVENTS, EXAMPLES, READINGS, STUDIES, TRIALS
from studies.records import StudyRecord

_ROWS_AT_ONCE = 500
_OF_STUDY = (CONFIRMATIONS, TRIALS, EVENTS)
_OF_TRIALS = (ATTEMPTS, READINGS, EXAMPLES, ARTEFACTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Result of copying a study.

    Attributes:
        study: Study in the source.
        name: Name of the study in the target.
        is_new: Whether it was copied; False if the same study was there already, which is left unchanged.
    """

    study: StudyRecord
    name: str
    is_new: bool


def copy_studies(source: Connection, target: Connection, studies: Sequence[StudyRecord]) -> list[Copied]:
    """Copy studies, oldest first.

    Args:
        source: Connection to the source.
        target: Connection to a target with tables of the same version.
        studies: Studies, together with the parents of confirmations among them.
    """
    home = home_of(target)
    there = {study.name: study for study in reads.studies(target)}
    same = {study.created_at: study for study in there.values()}
    keys: dict[int, int] = {}
    done = []
    for study in sorted(studies, key=lambda one: one.id):
        present = same.get(study.created_at)
        if present is not None:
            keys[study.id] = present.id
            done.append(Copied(study=study, name=present.name, is_new=False))
            continue
        name = _free(study.name, {*there, *(copied.name for copied in done)})
        folder = None if study.folder is None else written_folder(study.folder, home)
        changes = {"name": name, "folder": folder, "parent_id": keys.get(study.parent_id or -1)}
        keys[study.id] = _copy(source, target, study.id, changes)
        done.append(Copied(study=study, name=name, is_new=True))
    return done


def _free(name: str, taken: set[str]) -> str:
    """Return the name, with a number appended if it is taken."""
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(free for free in names if free not in taken)


def _copy(source: Connection, target: Connection, study_id: int, changes: Mapping[str, Any]) -> int:
    """Copy one study and return its key in the target."""
    (row,) = named_rows(source.execute(select(STUDIES).where(STUDIES.c.id == study_id)))
    checked_row(row, STUDIES)
    row |= {**changes, "holder": None, "held_until": None}
    row["specification"] = with_name(row["specification"], row["name"])
    del row["id"]
    key = int(target.execute(insert(STUDIES).returning(STUDIES.c.id), row).scalar_one())
    for table in _OF_STUDY:
        rows = named_rows(source.execute(select(table).where(table.c.study_id == study_id)))
        _insert(target, table, ({**checked_row(row, table), "study_id": key} for row in rows))
    numbered = select(TRIALS.c.number, TRIALS.c.id)
    old = {number: trial for number, trial in source.execute(numbered.where(TRIALS.c.study_id == study_id))}
    new = {old[number]: trial for number, trial in target.execute(numbered.where(TRIALS.c.study_id == key))}
    for table in _OF_TRIALS:
        of_trials = select(table).join(TRIALS, TRIALS.c.id == table.c.trial_id)
        in_order = of_trials.order_by(table.c.id) if "id" in table.c else of_trials
        rows = named_rows(source.execute(in_order.where(TRIALS.c.study_id == study_id)))
        _insert(target, table, ({**checked_row(row, table), "trial_id": new[row["trial_id"]]} for row in rows))
    return key


def with_name(specification: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a study file under another name."""
    return {**specification, "name": name} if "name" in specification else dict(specification)


def _insert(target: Connection, table: Table, rows: Iterator[dict[str, Any]]) -> None:
    """Insert rows in batches, with new keys where the table generates them."""
    new = ({name: value for name, value in row.items() if name != "id"} for row in rows)
    while batch := list(islice(new, _ROWS_AT_ONCE)):
        target.execute(insert(table), batch)
