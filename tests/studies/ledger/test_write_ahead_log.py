"""A copy of the database file alone is whole once the ledger that wrote it is closed."""

import shutil
import sqlite3
from contextlib import closing

from studies.ledger.ledger import Ledger


def names_in_a_copy(file):
    """Return the names of the studies in a copy of the file without its log."""
    copy = file.with_name("copy.db")
    shutil.copy(file, copy)
    with closing(sqlite3.connect(copy)) as link:
        return [name for (name,) in link.execute("SELECT name FROM studies")]


def test_copy_of_an_open_database_file_is_complete(file, values):
    url = f"sqlite:///{file}"
    Ledger.open(url).close()
    with Ledger.open(url, read_only=True) as dashboard:
        assert dashboard.studies() == []
        with Ledger.open(url) as ledger:
            ledger.create_study(values.study(name="kept"))
            assert names_in_a_copy(file) == []
        assert names_in_a_copy(file) == ["kept"]
        assert [study.name for study in dashboard.studies()] == ["kept"]


def test_closing_does_not_wait_for_a_long_reader(file, values):
    url = f"sqlite:///{file}"
    Ledger.open(url).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM studies").fetchall()
        with Ledger.open(url) as ledger:
            ledger.create_study(values.study(name="kept"))
        assert reader.execute("SELECT count(*) FROM studies").fetchone() == (0,)
    with Ledger.open(url, read_only=True) as ledger:
        assert [study.name for study in ledger.studies()] == ["kept"]


def test_a_file_that_is_gone_does_not_keep_a_ledger_from_closing(file, values):
    ledger = Ledger.open(f"sqlite:///{file}")
    ledger.create_study(values.study())
    for one in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        one.unlink()
    ledger.close()
    assert not file.exists()
