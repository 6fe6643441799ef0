"""Impossible values in a database: every reader reports them in one line."""

import sqlite3
from contextlib import closing

import pytest

from studies.analysis.sql import run_query
from studies.errors import DamagedError, StorageError
from studies.ledger.ledger import Ledger

DAMAGE = {
    "no JSON": ("UPDATE studies SET specification = '{\"a\" 1}'", "must hold JSON there; it is damaged"),
    "too deep": (f"UPDATE studies SET specification = '{'[' * 5000}{']' * 5000}'", "must hold JSON there"),
    "no time": ("UPDATE studies SET created_at = '2026-11-v2T01:19:51+00:00'", "must hold a time there"),
    "a number for a time": ("UPDATE studies SET created_at = x'00'", "must hold a time there"),
    "no kind": ("UPDATE studies SET kind = 'song'", "one of search, confirmation there; it is damaged .'song' is not"),
    "no study file": ("UPDATE studies SET specification = '1'", "must hold a study file there"),
    "no text": ("UPDATE studies SET name = CAST(x'ff41' AS TEXT)", "decode"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_value_that_cannot_be_is_one_line(tmp_path, values, damage):
    url = f"sqlite:///{tmp_path / 'x.db'}"
    with Ledger.open(url) as ledger:
        ledger.create_study(values.study())
    statement, message = DAMAGE[damage]
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as link:
        link.execute("PRAGMA ignore_check_constraints = ON")
        link.execute(statement)
    with Ledger.open(url, read_only=True) as ledger, pytest.raises(StorageError, match=message) as error:
        ledger.studies()
    assert "\n" not in str(error.value)


def test_a_configuration_that_is_none_is_one_line(kept, values, tamper):
    kept.ledger.add_trials(kept.id, kept.epoch, [values.trial(0)])
    refused_by_postgresql = ("no JSON", "", "[" * 5000)
    is_file = kept.ledger.database.address.file is not None
    for damage in ('{"edits": 7}', "{}", "7", *(refused_by_postgresql if is_file else ())):
        tamper(f"UPDATE trials SET configuration = '{damage}'")
        with pytest.raises(DamagedError, match="must hold a configuration there; it is damaged") as error:
            kept.ledger.trials(kept.id)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("ask", [lambda url: Ledger.open(url, read_only=True), lambda url: run_query(url, "SELECT 1")])
def test_a_schema_that_is_no_text_is_one_line(tmp_path, values, ask):
    file = tmp_path / "x.db"
    with Ledger.open(f"sqlite:///{file}") as ledger:
        ledger.create_study(values.study())
    with closing(sqlite3.connect(file, isolation_level=None)) as link:
        link.execute("PRAGMA writable_schema = ON")
        link.execute("UPDATE sqlite_master SET name = CAST(x'ffff' AS TEXT), sql = 'CREATE' WHERE name = 'attempts'")
    with pytest.raises(DamagedError, match="must hold UTF-8 there; it is damaged") as error:
        ask(f"sqlite:///{file}")
    assert "\n" not in str(error.value)
