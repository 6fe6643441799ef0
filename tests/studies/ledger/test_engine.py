import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.ordinary_user import as_ordinary_user

from studies.analysis.sql import run_query
from studies.errors import StorageError, StorageUrlError
from studies.ledger import engine
from studies.ledger.engine import Access, StorageAddress, open_engine
from studies.ledger.ledger import Ledger
from studies.ledger.sql_process import connect_reading


def refusal(use, *given, **options):
    """Return the single line with which a call is refused."""
    with pytest.raises(StorageError) as error:
        use(*given, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def create(ledger_url, study, **options):
    with Ledger.open(ledger_url, **options) as ledger:
        ledger.create_study(study)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that an ordinary user can read but not write."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.fixture
def short_patience(monkeypatch):
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", 0.2)


@pytest.fixture
def filled(open_folder, values) -> Callable[[], Path]:
    """Return a closed database file with one study."""
    file = open_folder / "x.db"
    with Ledger.open(f"sqlite:///{file}") as ledger:
        ledger.create_study(values.study())
    return file


def test_a_missing_database_is_not_created_by_reading(tmp_path):
    url = f"sqlite:///{tmp_path / 'none.db'}"
    for options in ({"read_only": True}, {"create": False}):
        assert refusal(Ledger.open, url, **options) == f"no database at {url}; launch a study first."
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_not_touched(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("These are notes and no database. " * 100)
    for options in ({}, {"read_only": True}):
        assert "must be an SQLite database" in refusal(Ledger.open, f"sqlite:///{file}", **options)
    assert file.read_text().startswith("These are notes")


@pytest.mark.parametrize("option", [{}, {"create": False}])
def test_a_read_only_file_cannot_be_launched_into(filled, open_folder, option, values):
    filled.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    with as_ordinary_user():
        assert "must be writable" in refusal(create, f"sqlite:///{filled}", values.study(name="more"), **option)


def test_a_folder_that_cannot_be_written_takes_no_new_database(open_folder):
    open_folder.chmod(0o555)
    with as_ordinary_user():
        assert "is not accessible" in refusal(Ledger.open, f"sqlite:///{open_folder}/new.db")


def test_a_database_in_a_read_only_folder_can_be_read(filled, open_folder):
    filled.chmod(0o444)
    open_folder.chmod(0o555)
    url = f"sqlite:///{filled}"
    with as_ordinary_user():
        with Ledger.open(url, read_only=True) as ledger:
            assert [study.name for study in ledger.studies()] == ["sst2"]
        with closing(connect_reading(filled.as_uri(), str(filled))) as connection:  # as a query does
            assert connection.execute("SELECT name FROM studies").fetchall() == [("sst2",)]


def test_reader_of_a_read_only_folder_reads_new_commits(filled, open_folder, values):
    url = f"sqlite:///{filled}"
    with Ledger.open(url) as writer:
        writer.create_study(values.study(name="more"))
        with as_ordinary_user(), Ledger.open(url, read_only=True) as ledger:
            assert [study.name for study in ledger.studies()] == ["sst2", "more"]


def test_locked_database_is_reported_without_loss(filled, short_patience, values):
    url = f"sqlite:///{filled}"
    with Ledger.open(url) as ledger:
        other = sqlite3.connect(filled, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert "is locked by another process" in refusal(ledger.create_study, values.study(name="more"))
        assert len(ledger.studies()) == 1
        other.execute("ROLLBACK")
        other.close()
        ledger.create_study(values.study(name="more"))
        assert len(ledger.studies()) == 2


def test_an_empty_database_that_is_locked_is_reported_when_it_is_opened(tmp_path, short_patience):
    other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    assert "is locked by another process" in refusal(Ledger.open, f"sqlite:///{tmp_path / 'x.db'}")
    other.close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/db", "scheme 'mysql'"),
        ("postgresql+asyncpg://host/db", "scheme 'postgresql"),
        ("deltaspace.db", "must be a URL"),
        ("", "must be a URL"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite://deltaspace.db", "three slashes"),
        ("sqlite:///x.db?mode=ro", "three slashes"),
        ("postgresql://host", "must name a database"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url, message):
    for use in (Ledger.open, lambda text: run_query(text, "SELECT 1")):
        assert message in refusal(use, url)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_usual_postgresql_schemes_are_accepted(scheme):
    address = StorageAddress.parse(f"{scheme}://user:secret@host/db")
    assert address.url.drivername == "postgresql+psycopg"
    assert address.url.password == "secret"
    assert address.shown == f"{scheme}://user:***@host/db"
    assert address.file is None


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@host/db",
        "postgresql://user:se/secret@host/db",
        "postgresql://user@host/db?password=secret&sslmode=require",
        "postgresql:///db?user=me&password=secret",
        "postgresql://user@host/db?sslpassword=secret",
        "postgresql://:secret@host/db",
    ],
)
def test_a_password_is_hidden_wherever_it_stands_in_a_url(url):
    shown = StorageAddress.parse(url).shown
    assert "secret" not in shown
    assert "***" in shown


def test_a_password_that_reaches_into_the_host_is_refused_and_not_shown():
    message = refusal(StorageAddress.parse, "postgresql://user:a@secret@host/db")
    assert "must be written %40" in message
    assert "secret" not in message


def test_a_relative_file_stays_the_same_when_the_folder_changes(tmp_path, monkeypatch, values):
    monkeypatch.chdir(tmp_path)
    with Ledger.open("sqlite:///x.db") as ledger:
        monkeypatch.chdir("/")
        ledger.create_study(values.study())
        assert ledger.url == "sqlite:///x.db"
    assert (tmp_path / "x.db").exists()


def test_a_file_name_may_hold_anything(tmp_path, values):
    url = f"sqlite:///{tmp_path}/50% of #1 möglich.db"
    with Ledger.open(url) as ledger:
        ledger.create_study(values.study())
    assert run_query(url, "SELECT count(*) FROM studies").rows == ((1,),)
    assert (tmp_path / "50% of #1 möglich.db").exists()


def test_missing_driver_error_names_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = refusal(Ledger.open, "postgresql://user:secret@host/db")
    assert message.endswith("Run: pip install 'deltaspace[postgres]'")
    assert "secret" not in message


def test_unreachable_server_error_hides_the_password(tmp_path):
    for use in (Ledger.open, lambda text: run_query(text, "SELECT 1")):
        message = refusal(use, f"postgresql://user:secret@/db?host={tmp_path}")
        assert message.startswith("cannot reach postgresql://user:***@/db")
        assert "secret" not in message


@pytest.mark.postgres
def test_a_database_that_the_server_does_not_have_is_reported(postgres_server):
    assert 'database "nowhere" does not exist' in refusal(Ledger.open, postgres_server.url("nowhere"))


@pytest.mark.postgres
def test_a_locked_study_on_a_server_is_reported(postgres_url, monkeypatch, values):
    import psycopg

    monkeypatch.setattr(engine, "SERVER_SETTINGS", "-c lock_timeout=200ms")
    with Ledger.open(postgres_url) as ledger:
        study = ledger.create_study(values.study())
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT * FROM studies FOR UPDATE")
            assert "is locked by another process" in refusal(ledger.take_over, study.id, "keeper")
            other.rollback()
        assert ledger.take_over(study.id, "keeper") == 1


@pytest.mark.postgres
def test_the_users_own_server_options_are_kept(postgres_url):
    wanted = {"work_mem": "7MB", "timezone": "UTC", "lock_timeout": "10s"}
    with Ledger.open(f"{postgres_url}&options=-c%20work_mem%3D7MB") as ledger:
        queries = {
            name: ledger.read(lambda link, of=name: link.exec_driver_sql(f"SHOW {of}").scalar()) for name in wanted
        }
    assert queries == wanted


@pytest.mark.parametrize("access", list(Access))
def test_a_pipe_and_a_device_are_no_databases(tmp_path, access):
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "device.db").symlink_to("/dev/zero")
    for name in ("pipe.db", "device.db"):
        with pytest.raises(StorageUrlError, match="must be a regular file"):
            open_engine(StorageAddress.parse(f"sqlite:///{tmp_path / name}"), access)
