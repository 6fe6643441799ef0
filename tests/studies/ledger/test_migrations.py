import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable
from support.fixed_ledger import fixed_ledger

from studies.errors import SchemaVersionError, StorageError
from studies.ledger import migrations
from studies.ledger.database import Database
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.ledger import Ledger
from studies.ledger.migrations import NEWEST
from studies.ledger.tables import METADATA
from studies.ledger.views import statements

GOLDEN = Path(__file__).parent / "schemas"
LATER = Path(__file__).parents[2] / "data" / "revisions"
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}
OPEN_WAYS = ({}, {"create": False}, {"read_only": True})


REVISIONS = migrations.config


def with_a_later_revision(folder=LATER):
    config = REVISIONS()
    here = config.get_main_option("version_locations")
    config.set_main_option("version_locations", f"{here}\n{folder}")
    return config


def version(ledger):
    return ledger.read(lambda link: link.execute(text("SELECT version_num FROM deltaspace_version")).scalars().all())


def test_the_newest_version_is_the_head_of_the_revisions():
    assert ScriptDirectory.from_config(migrations.config()).get_heads() == [NEWEST]


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
        message = rf"must be of version {NEWEST}; got version {found}. Use the release that made"
        with pytest.raises(SchemaVersionError, match=message):
            Ledger.open(storage_url, **options)
    assert version(ledger) == [found] * (found != "none")


@pytest.fixture
def filled(storage_url, tmp_path):
    fixed_ledger(storage_url, tmp_path)
    return storage_url


def all_rows(link):
    """Return all rows of every table, in the order of their keys."""
    found = {}
    for name, table in METADATA.tables.items():
        columns, order = (", ".join(some.keys()) for some in (table.columns, table.primary_key.columns))
        found[name] = [*map(tuple, link.execute(text(f"SELECT {columns} FROM {name} ORDER BY {order}")))]
    return found


def test_a_revision_is_applied_to_both_databases_after_a_backup(filled):
    address = StorageAddress.parse(filled)
    with Ledger.open(filled, read_only=True) as ledger:
        before = ledger.read(all_rows)
    migrations.upgrade(address, with_a_later_revision())
    with pytest.raises(SchemaVersionError, match="got version 0002"):
        Ledger.open(filled)
    database = Database(open_engine(address, Access.WRITE), address)
    with closing(database), database.once(writes=True) as link:
        assert all_rows(link) == before | {"deltaspace_version": [("0002",)]}
        assert link.execute(text("SELECT DISTINCT note FROM studies")).scalars().all() == [""]
        assert link.execute(text("SELECT count(*) FROM leaderboard")).scalar_one() > 0
        if address.file is None:
            assert link.execute(text("SELECT count(*) FROM before_0001.trials")).scalar_one() == len(before["trials"])
    with closing(database), pytest.raises(StorageError, match="a terminal trial never changes"):
        database.write(lambda link, _: link.execute(text("UPDATE trials SET seed = 1 WHERE state = 'complete'")))
    if address.file is not None:
        backup = address.file.with_name(f"{address.file.name}.0001.bak")
        with Ledger.open(f"sqlite:///{backup}", read_only=True) as ledger:
            assert ledger.read(all_rows) == before


def test_a_revision_that_fails_leaves_the_database_as_it_was(filled, tmp_path):
    shutil.copy(LATER / "note.py", tmp_path / "note.py")
    with (tmp_path / "note.py").open("a") as file:
        file.write("    op.execute('SELECT * FROM nowhere')\n")
    with pytest.raises(StorageError, match="nowhere"):
        migrations.upgrade(StorageAddress.parse(filled), with_a_later_revision(tmp_path))
    with Ledger.open(filled) as ledger:
        assert version(ledger) == [NEWEST]
        columns = ledger.read(lambda link: [column["name"] for column in inspect(link).get_columns("studies")])
        assert "note" not in columns
        assert set(ledger.read(lambda link: inspect(link).get_table_names())) == set(METADATA.tables)
        assert ledger.read(lambda link: link.execute(text("SELECT count(*) FROM leaderboard")).scalar_one()) > 0


def test_a_launch_brings_an_earlier_database_up_to_date(storage_url, ledger, values, monkeypatch):
    ledger.create_study(values.study())
    monkeypatch.setattr(migrations, "NEWEST", "0002")
    monkeypatch.setattr(migrations, "config", with_a_later_revision)
    monkeypatch.setattr(migrations, "upgrade", lambda address, config: applied.append(address.shown))
    applied = []
    for options in OPEN_WAYS[1:]:
        with pytest.raises(SchemaVersionError, match="must be of version 0002; got version 0001"):
            Ledger.open(storage_url, **options)
    assert not applied
    Ledger.open(storage_url).close()
    assert applied == [ledger.url]


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
    with pytest.raises(StorageError, match=r"of another program \(studies, trials\)\. Use a separate database"):
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
def test_tables_do_not_change_without_a_revision(dialect):
    """Test the schema against its golden file; to change a table, add a revision and change that file."""
    assert schema(dialect) == (GOLDEN / f"{dialect}.sql").read_text()


def test_access_is_named_as_sqlite_names_it():
    assert [access.value for access in Access] == ["rwc", "rw", "ro"]
