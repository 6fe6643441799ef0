"""Records of a study at one moment, and the checks of the database itself.

Constraints of the tables are checks, too: each is a query for the rows that violate it, on every database. A SQLite
file is also checked by SQLite, and its schema is compared with the one that this release creates.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from sqlalchemy import CheckConstraint, Connection, create_engine, func, select, text

from studies.ledger import reads
from studies.ledger.files import broken_files
from studies.ledger.ledger import Ledger
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS, create_views
from studies.records.reading import ArtefactRecord, ExampleRecord
from studies.records.study import EventRecord, StudyRecord
from studies.records.trial import AttemptRecord, TrialRecord, TrialState
from trial_runner.requests import Reading

_OWN = {*METADATA.tables, *VIEWS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All records of a study; attempts and readings are by trial number."""

    study: StudyRecord
    trials: Sequence[TrialRecord]
    attempts: Mapping[int, Sequence[AttemptRecord]]
    readings: Mapping[int, Sequence[Reading]]
    examples: Sequence[ExampleRecord]
    artefacts: Sequence[ArtefactRecord]
    events: Sequence[EventRecord]

    @classmethod
    def of(cls, link: Connection, study_id: int) -> Self:
        """Return the records of a study at one moment; trials may be missing."""
        (study,) = (one for one in reads.studies(link) if one.id == study_id)
        attempts: dict[int, list[AttemptRecord]] = defaultdict(list)
        for attempt in reads.attempts(link, study_id):
            attempts[attempt.trial].append(attempt)
        return cls(
            study=study,
            trials=reads.trials_as_they_are(link, study_id),
            attempts=attempts,
            readings=reads.readings_by_trial(link, study_id),
            examples=reads.examples(link, study_id),
            artefacts=reads.artefacts(link, study_id),
            events=reads.events(link, study_id),
        )


def database_violations(link: Connection) -> list[str]:
    """Return the problems of a database: violated constraints, and of a SQLite file its integrity and its schema."""
    found = []
    for table in METADATA.sorted_tables:
        for check in table.constraints:
            if isinstance(check, CheckConstraint):
                count = link.execute(
                    select(func.count()).select_from(table).where(text(f"NOT ({check.sqltext})"))
                ).scalar_one()
                found += [f"all {table.name} must satisfy {check.sqltext}; got {count} that do not"] * (count > 0)
    if link.dialect.name != "sqlite":
        return found
    said = [str(line) for line in link.exec_driver_sql("PRAGMA integrity_check").scalars() if line != "ok"]
    found += [line for line in said if not line.startswith("CHECK constraint failed")]
    for table, row, parent, _ in link.exec_driver_sql("PRAGMA foreign_key_check"):
        found.append(f"a row of {table} must refer to one of {parent}; row {row} does not")
    with create_engine("sqlite://").connect() as fresh:
        METADATA.create_all(fresh)
        create_views(fresh)
        expected, own = _schema_statements(fresh), _schema_statements(link)
    for name in sorted(expected.keys() | own.keys()):
        if own.get(name) != expected.get(name):
            wanted = "be that of this release" if name in expected else "not be there"
            found.append(
                f"the schema's {name} must {wanted}; got {'another' if name in own else 'none'}. "
                "'deltaspace backup' copies all studies into a file with the right one."
            )
    return found


def _schema_statements(link: Connection) -> dict[str, str]:
    """Return the statements of the tables and views of this project, and of their indexes and triggers, by name."""
    rows = link.exec_driver_sql("SELECT name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: " ".join(sql.split()) for name, table, sql in rows if table in _OWN}


def lost_weights(ledger: Ledger, study: StudyRecord) -> list[ArtefactRecord]:
    """Return the complete trials whose weights are missing or changed; only a new training restores them."""
    complete = {trial.number for trial in ledger.trials(study.id, states=[TrialState.COMPLETE])}
    weights = [one for one in ledger.artefacts(study.id) if one.kind == "delta" and one.trial in complete]
    return [artefact for artefact, _ in broken_files(study, weights)]
