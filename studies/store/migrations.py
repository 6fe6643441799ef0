"""Brings a database to the version of the tables that this program uses.

An empty database gets today's tables at once and is marked with the newest version. An older one gets the steps above
its own version, in order, in one transaction. So a step, once released, must not change, and from the second on it is
written out in SQL rather than in terms of today's mapping. To change a table: change the mapping, add a step. Views
hold nothing: they are made anew after the steps, so one that changes needs a step that does nothing.

The version is kept in a table of our own, because other programs that use the same database have theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath

from sqlalchemy import JSON, Connection, bindparam, func, insert, inspect, select, text

from studies.errors import SchemaVersionError, StorageError, StorageUrlError
from studies.store.tables import METADATA, SCHEMA
from studies.store.views import VIEWS, create_views, drop_views

# Any constant: two processes that create the same database take turns.
_ADVISORY_LOCK = 0x64656C7461


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """A step from one version of the tables to the next.

    Attributes:
        version: The version that it leads to.
        apply: Does it, within the caller's transaction.
    """

    version: int
    description: str
    apply: Callable[[Connection], None]


def _create_tables(connection: Connection) -> None:
    """Create today's tables."""
    METADATA.create_all(connection, checkfirst=False)


def _add_confirmations(connection: Connection) -> None:
    """Tell studies that search from studies that confirm another."""
    connection.execute(
        text(
            "ALTER TABLE studies ADD COLUMN kind TEXT DEFAULT 'search' NOT NULL "
            "CONSTRAINT ck_studies_kind CHECK (kind IN ('search', 'confirmation'))"
        )
    )
    connection.execute(
        text(
            "ALTER TABLE studies ADD COLUMN parent_id INTEGER "
            "CONSTRAINT ck_studies_parent_exactly_of_confirmations "
            "CHECK ((kind = 'confirmation') = (parent_id IS NOT NULL)) "
            "CONSTRAINT fk_studies_parent_id_studies REFERENCES studies (id)"
        )
    )


def _move_confirmations(connection: Connection) -> None:
    """Take what a confirmation is out of the specification of its study."""
    connection.execute(
        text(
            "CREATE TABLE confirmations (study_id INTEGER NOT NULL, top INTEGER NOT NULL, against JSON NOT NULL, "
            "seeds JSON NOT NULL, contenders JSON NOT NULL, left_out JSON NOT NULL, "
            "CONSTRAINT pk_confirmations PRIMARY KEY (study_id), CONSTRAINT ck_confirmations_top CHECK (top >= 1), "
            "CONSTRAINT fk_confirmations_study_id_studies FOREIGN KEY(study_id) REFERENCES studies (id))"
        )
    )
    lists = ("against", "seeds", "contenders", "left_out")
    names = ("study_id", "top", *lists)
    add = text(f"INSERT INTO confirmations ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})")
    add = add.bindparams(*(bindparam(name, type_=JSON) for name in lists))
    change = text("UPDATE studies SET specification = :specification WHERE id = :study_id")
    change = change.bindparams(bindparam("specification", type_=JSON))
    held = text("SELECT id, specification FROM studies WHERE kind = 'confirmation'").columns(specification=JSON)
    for study_id, specification in connection.execute(held).all():
        record = specification.pop("confirmation", None)
        if record is None:
            continue
        connection.execute(add, {"study_id": study_id, **{name: record[name] for name in names[1:]}})
        connection.execute(change, {"study_id": study_id, "specification": specification})


def _add_replicates(connection: Connection) -> None:
    """Let a trial be a replicate of another."""
    before = "origin IN ('published', 'proposed')"
    after = "origin IN ('published', 'proposed', 'replicate')"
    if connection.dialect.name == "sqlite":
        _replace_in_table(connection, "trials", f"CHECK ({before})", f"CHECK ({after})")
    else:
        connection.execute(text("ALTER TABLE trials DROP CONSTRAINT ck_trials_origin"))
        connection.execute(text(f"ALTER TABLE trials ADD CONSTRAINT ck_trials_origin CHECK ({after})"))
    connection.execute(
        text(
            "ALTER TABLE trials ADD COLUMN replicate_of INTEGER "
            "CONSTRAINT ck_trials_replicate_of_exactly_of_replicates CHECK ((origin = 'replicate') = "
            "(replicate_of IS NOT NULL) AND replicate_of BETWEEN 0 AND number - 1)"
        )
    )


def _replace_in_table(connection: Connection, table: str, before: str, after: str) -> None:
    """Change the text of a constraint in SQLite, which has no other way; no row is touched.

    https://www.sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes", the second procedure.
    """
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    change = text("UPDATE sqlite_master SET sql = replace(sql, :before, :after) WHERE type = 'table' AND name = :table")
    connection.execute(change, {"before": before, "after": after, "table": table})
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")


def _add_examples(connection: Connection) -> None:
    """Keep what readings measured example by example."""
    binary = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    connection.execute(
        text(
            f"CREATE TABLE examples (trial_id INTEGER NOT NULL, step INTEGER NOT NULL, losses {binary} NOT NULL, "
            f"correct {binary}, CONSTRAINT pk_examples PRIMARY KEY (trial_id, step), "
            "CONSTRAINT fk_examples_trial_id_step_readings FOREIGN KEY(trial_id, step) "
            "REFERENCES readings (trial_id, step), CONSTRAINT ck_examples_losses CHECK (length(losses) > 0))"
        )
    )


def _prepare_for_estimates(connection: Connection) -> None:
    """All of version 3."""
    _move_confirmations(connection)
    _add_replicates(connection)
    _add_examples(connection)


def _add_times_of_readings(connection: Connection) -> None:
    """Keep when a reading was heard of; of earlier ones nobody knows."""
    kind = "VARCHAR(32)" if connection.dialect.name == "sqlite" else "TIMESTAMP WITH TIME ZONE"
    connection.execute(text(f"ALTER TABLE readings ADD COLUMN heard_at {kind}"))


def _add_extra_flops(connection: Connection) -> None:
    """Keep what trials add to the work of inference; of earlier ones it is not in the database."""
    connection.execute(
        text(
            "ALTER TABLE trials ADD COLUMN extra_flops BIGINT CONSTRAINT ck_trials_extra_flops CHECK (extra_flops >= 0)"
        )
    )


def _let_files_travel(connection: Connection) -> None:
    """Tell where the folder of a study lies, and write its files relative to it; what lies elsewhere stays."""
    connection.execute(text("ALTER TABLE studies ADD COLUMN folder TEXT"))
    files = connection.execute(
        text("SELECT a.id, t.study_id, a.path FROM artefacts a JOIN trials t ON t.id = a.trial_id ORDER BY a.id")
    ).all()
    folders: dict[int, PurePath] = {}
    for _, study_id, path in files:
        attempt, trial, folder = (*PurePath(path).parents, *3 * [PurePath()])[:3]
        if attempt.name.startswith("attempt-") and trial.name.startswith("trial-") and folder.is_absolute():
            folders[study_id] = folder
    for study_id, folder in folders.items():
        change = text("UPDATE studies SET folder = :folder WHERE id = :study_id")
        connection.execute(change, {"folder": str(folder), "study_id": study_id})
    for key, study_id, path in files:
        if study_id in folders and PurePath(path).is_relative_to(folders[study_id]):
            relative = str(PurePath(path).relative_to(folders[study_id]))
            connection.execute(
                text("UPDATE artefacts SET path = :path WHERE id = :key"), {"path": relative, "key": key}
            )


def _add_holders(connection: Connection) -> None:
    """Tell which launch runs a study."""
    kind = "VARCHAR(32)" if connection.dialect.name == "sqlite" else "TIMESTAMP WITH TIME ZONE"
    connection.execute(text("ALTER TABLE studies ADD COLUMN holder TEXT"))
    connection.execute(text(f"ALTER TABLE studies ADD COLUMN held_until {kind}"))


def _prepare_for_questions(connection: Connection) -> None:
    """All of version 4."""
    _add_extra_flops(connection)
    _add_times_of_readings(connection)
    _let_files_travel(connection)
    _add_holders(connection)


def _add_sizes_of_confirmations(connection: Connection) -> None:
    """Keep how small what is confirmed had to be; of earlier ones it is not in the database."""
    connection.execute(
        text(
            "ALTER TABLE confirmations ADD COLUMN most_parameters BIGINT "
            "CONSTRAINT ck_confirmations_most_parameters CHECK (most_parameters >= 0)"
        )
    )


MIGRATIONS: tuple[Migration, ...] = (
    Migration(version=1, description="studies, trials, attempts, readings, artefacts, events", apply=_create_tables),
    Migration(version=2, description="confirmations: studies of another study's winners", apply=_add_confirmations),
    Migration(
        version=3,
        description="confirmations have a table of their own; examples of readings; replicates",
        apply=_prepare_for_estimates,
    ),
    Migration(
        version=4,
        description="times of readings; extra FLOPs of trials; views; files relative to the study's folder",
        apply=_prepare_for_questions,
    ),
    Migration(
        version=5,
        description="sizes of confirmations",
        apply=_add_sizes_of_confirmations,
    ),
)


def version_of(connection: Connection) -> int:
    """The version of the database's tables; 0 when it has none of ours."""
    if not inspect(connection).has_table(SCHEMA.name):
        return 0
    return int(connection.execute(select(func.coalesce(func.max(SCHEMA.c.version), 0))).scalar_one())


def check_version(connection: Connection, shown: str) -> None:
    """Refuse a database that this program cannot use as it is.

    Raises:
        StorageError: If it holds no tables of ours.
        SchemaVersionError: If its tables are older or newer.
    """
    found, known = version_of(connection), MIGRATIONS[-1].version
    if found == 0:
        raise StorageUrlError(f"no studies in {shown}; launch a study first.")
    if found > known:
        raise _newer(found, known, shown)
    if found < known:
        raise SchemaVersionError(
            f"the tables of {shown} must be of version {known}; got version {found}. Launch a study there to upgrade."
        )


def bring_up_to_date(connection: Connection, shown: str) -> int:
    """Create the tables or upgrade them, and return the version found before.

    Raises:
        SchemaVersionError: If the tables are newer than this program.
        StorageError: If another program's tables have the same names.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    found, known = version_of(connection), MIGRATIONS[-1].version
    if found > known:
        raise _newer(found, known, shown)
    steps = [step for step in MIGRATIONS if step.version > found]
    if found == 0:
        _refuse_other_programs(connection, shown)
    if steps:
        drop_views(connection)
        for step in steps[:1] if found == 0 else steps:
            step.apply(connection)
        create_views(connection)
        now = datetime.now(UTC)
        connection.execute(insert(SCHEMA), [{"version": step.version, "applied_at": now} for step in steps])
    return found


def _newer(found: int, known: int, shown: str) -> SchemaVersionError:
    """A database of the future."""
    return SchemaVersionError(
        f"the tables of {shown} must be of version {known} or older; got version {found}. Upgrade deltaspace."
    )


def _refuse_other_programs(connection: Connection, shown: str) -> None:
    """Optuna, for one, has tables of the same names."""
    seen = inspect(connection)
    ours = {*METADATA.tables, *(view.name for view in VIEWS)}
    taken = sorted({*seen.get_table_names(), *seen.get_view_names()} & ours)
    if taken:
        raise StorageError(
            f"{shown} must be empty or hold studies of deltaspace; it holds tables of another program "
            f"({', '.join(taken)}). Give deltaspace a database of its own."
        )
