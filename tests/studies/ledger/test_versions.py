import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from sqlalchemy import inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from studies.errors import SchemaVersionError, StorageError
from studies.ledger.engine import Access
from studies.ledger.ledger import Ledger
from studies.ledger.tables import METADATA
from studies.ledger.versions import NEWEST
from studies.ledger.views import statements

GOLDEN = Path(__file__).parent / "schemas"
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}
OPEN_WAYS = ({}, {"create": False}, {"read_only": True})


def version(ledger):
    return ledger.read(lambda link: link.execute(text("SELECT version_num FROM deltaspace_version")).scalars().all())


def test_a_new_database_is_stamped_in_a_table_of_its_own(ledger):
    assert version(ledger) == [NEWEST]
    tables = ledger.read(lambda link: inspect(link).get_table_names())
    assert set(tables) == set(METADATA.tables)
    assert "alembic_version" not in tables


@pytest.mark.parametrize("found", ["0007", "none"])
def test_a_database_of_another_version_is_refused_and_not_touched(storage_url, tamper, ledger, found):
    tamper("DELETE FROM deltaspace_version")
    if found != "none":
        tamper(f"INSERT INTO deltaspace_version VALUES ('{found}')")
    for options in OPEN_WAYS:
        said = rf"must be of version {NEWEST}; got version {found}. Use the release that made"
        with pytest.raises(SchemaVersionError, match=said):
            Ledger.open(storage_url, **options)
    assert version(ledger) == [found] * (found != "none")


def test_an_empty_database_is_not_filled_by_reading(storage_url):
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
    with pytest.raises(StorageError, match=r"of another program \(studies, trials\). Give deltaspace a database"):
        Ledger.open(url)
    assert optuna.load_study(storage=url, study_name="theirs").trials == []


OPENS = "import sys; from studies.ledger.ledger import Ledger; Ledger.open(sys.argv[1]).close()"


@pytest.mark.slow
def test_processes_that_create_the_same_database_take_turns(storage_url):
    openers = [subprocess.Popen([sys.executable, "-c", OPENS, storage_url]) for _ in range(4)]
    assert [opener.wait(timeout=60) for opener in openers] == [0] * 4
    with Ledger.open(storage_url, create=False) as ledger:
        assert version(ledger) == [NEWEST]


def schema(dialect):
    parts = []
    for table in METADATA.sorted_tables:
        parts.append(str(CreateTable(table).compile(dialect=DIALECTS[dialect])).strip())
        indexes = sorted(table.indexes, key=lambda index: index.name)
        parts += [str(CreateIndex(index).compile(dialect=DIALECTS[dialect])).strip() for index in indexes]
    parts += statements(dialect)
    return ";\n\n".join(line.replace(" \n", "\n").replace("\t", "    ") for line in parts) + ";\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tables_do_not_change_without_a_version(dialect):
    """To change a table, see `studies.ledger.versions`, and change the file."""
    assert schema(dialect) == (GOLDEN / f"{dialect}.sql").read_text()


def test_access_is_named_as_sqlite_names_it():
    assert [access.value for access in Access] == ["rwc", "rw", "ro"]
