import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from sqlalchemy import inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from studies.errors import SchemaVersionError, StorageError
from studies.store import migrations
from studies.store.engine import Access
from studies.store.ledger import Ledger
from studies.store.migrations import MIGRATIONS, Migration
from studies.store.tables import METADATA

GOLDEN = Path(__file__).parent / "schemas"
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}


def add_note(connection):
    connection.execute(text("ALTER TABLE studies ADD COLUMN note TEXT"))


def fail(connection):
    add_note(connection)
    connection.execute(text("SELECT * FROM nowhere"))


SECOND = Migration(version=2, description="a note per study", apply=add_note)
THIRD = Migration(version=3, description="nothing", apply=lambda connection: None)


def columns(url):
    with Ledger.open(url, create=False) as ledger:
        return ledger.read(lambda link: [column["name"] for column in inspect(link).get_columns("studies")])


def versions(ledger):
    return ledger.read(
        lambda link: link.execute(text("SELECT version FROM deltaspace_schema ORDER BY 1")).scalars().all()
    )


def test_versions_count_up_from_one():
    assert [step.version for step in MIGRATIONS] == list(range(1, len(MIGRATIONS) + 1))


def test_a_new_database_has_the_newest_version_in_a_table_of_its_own(ledger):
    assert versions(ledger) == [step.version for step in MIGRATIONS]
    tables = ledger.read(lambda link: inspect(link).get_table_names())
    assert set(tables) == set(METADATA.tables)
    assert "alembic_version" not in tables


def test_an_older_database_is_upgraded_step_by_step_and_keeps_what_it_holds(storage_url, values, monkeypatch):
    with Ledger.open(storage_url) as ledger:
        ledger.create_study(values.study())
    assert "note" not in columns(storage_url)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, SECOND, THIRD))
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(SchemaVersionError, match=r"must be of version 3; got version 1. Launch a study there"):
            Ledger.open(storage_url, **options)
    with Ledger.open(storage_url) as ledger:
        assert versions(ledger) == [1, 2, 3]
        names = ledger.read(lambda link: link.execute(text("SELECT name, note FROM studies")).all())
        assert names == [("sst2", None)]
    with Ledger.open(storage_url) as ledger:
        assert versions(ledger) == [1, 2, 3]
    assert columns(storage_url)[-1] == "note"


def test_a_step_that_fails_leaves_the_database_as_it_was(storage_url, ledger, monkeypatch):
    breaks = Migration(version=2, description="breaks", apply=fail)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS, breaks))
    with pytest.raises(StorageError, match="nowhere"):
        Ledger.open(storage_url)
    monkeypatch.undo()
    assert versions(ledger) == [1]
    assert "note" not in columns(storage_url)


def test_a_newer_database_is_refused_and_not_touched(storage_url, tamper, ledger):
    tamper("INSERT INTO deltaspace_schema (version, applied_at) VALUES (7, '2030-01-01 00:00:00.000000+00:00')")
    for options in ({}, {"create": False}, {"read_only": True}):
        with pytest.raises(
            SchemaVersionError, match=r"must be of version 1 or older; got version 7. Upgrade deltaspace"
        ):
            Ledger.open(storage_url, **options)


def test_an_empty_database_is_not_filled_by_reading(storage_url, request):
    if storage_url.startswith("sqlite"):
        Path(storage_url.removeprefix("sqlite:///")).touch()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StorageError, match=r"no studies in .*; launch a study first"):
            Ledger.open(storage_url, **options)
    with Ledger.open(storage_url) as ledger:
        assert ledger.studies() == []


def test_a_database_of_optuna_is_refused_and_not_touched(tmp_path):
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    optuna.create_study(storage=url, study_name="theirs")
    with pytest.raises(
        StorageError, match=r"tables of another program \(studies, trials\). Give deltaspace a database"
    ):
        Ledger.open(url)
    assert optuna.load_study(storage=url, study_name="theirs").trials == []


OPENS = "import sys; from studies.store.ledger import Ledger; Ledger.open(sys.argv[1]).close()"


def test_processes_that_create_the_same_database_take_turns(storage_url):
    openers = [subprocess.Popen([sys.executable, "-c", OPENS, storage_url]) for _ in range(4)]
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 4
    with Ledger.open(storage_url, create=False) as ledger:
        assert versions(ledger) == [1]


def schema(dialect):
    parts = []
    for table in METADATA.sorted_tables:
        parts.append(str(CreateTable(table).compile(dialect=DIALECTS[dialect])).strip())
        indexes = sorted(table.indexes, key=lambda index: index.name)
        parts += [str(CreateIndex(index).compile(dialect=DIALECTS[dialect])).strip() for index in indexes]
    return ";\n\n".join(line.replace(" \n", "\n").replace("\t", "    ") for line in parts) + ";\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tables_do_not_change_without_a_migration(dialect):
    """To change a table, add a step to MIGRATIONS and a file of the new version."""
    golden = GOLDEN / f"{dialect}_{MIGRATIONS[-1].version}.sql"
    assert schema(dialect) == golden.read_text()


def test_access_is_named_as_sqlite_names_it():
    assert [access.value for access in Access] == ["rwc", "rw", "ro"]
