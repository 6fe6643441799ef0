"""Patience of a keeper: it waits for a locked or unreachable database, reports that, and gives up in time."""

import sqlite3
from contextlib import closing

import pytest

from studies.errors import StorageError
from studies.ledger import engine
from studies.ledger.database import Patience
from studies.ledger.ledger import Ledger


@pytest.fixture(autouse=True)
def short_waits_of_the_databases(monkeypatch):
    monkeypatch.setattr(engine, "BUSY_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(engine, "SERVER_SETTINGS", engine.SERVER_SETTINGS.replace("10s", "50ms"))


class Waiting:
    """Receiver of waiting messages, which acts after some of them."""

    def __init__(self, end=lambda: None, after=2):
        self.end, self.after = end, after
        self.messages = []

    def __call__(self, text):
        self.messages.append(text)
        if len(self.messages) == self.after:
            self.end()


@pytest.fixture
def locked(tmp_path, values):
    """Yield the URL of an SQLite ledger with a study, and the connection that locks it."""
    url = f"sqlite:///{tmp_path / 'x.db'}"
    with Ledger.open(url) as ledger:
        ledger.create_study(values.study())
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield url, other


def test_keeper_reports_waiting_for_a_locked_file(locked):
    url, other = locked
    waiting = Waiting(lambda: other.execute("COMMIT"))
    with Ledger.open(url, create=False, patience=Patience(seconds=60, tell=waiting)) as ledger:
        assert ledger.take_over(ledger.study("sst2").id, "second") == 1
    assert waiting.messages[0] == waiting.messages[1]
    assert waiting.messages[0].startswith(f"{url} is locked by ")
    assert waiting.messages[0].endswith("; waiting for it, 60 s at most")
    assert waiting.messages[-1] == "", "the waiting is over"


def test_a_file_that_stays_locked_is_given_up_in_the_end(locked):
    url, _ = locked
    waiting = Waiting()
    with Ledger.open(url, create=False, patience=Patience(seconds=0.3, tell=waiting)) as ledger:
        key = ledger.study("sst2").id
        with pytest.raises(StorageError, match="is locked by another process"):
            ledger.take_over(key, "second")
    assert len(waiting.messages) > 1


def test_waiting_ends_at_once_on_request(locked):
    url, _ = locked
    waiting = Waiting(after=1)
    patience = Patience(seconds=1e9, tell=waiting, is_over=lambda: bool(waiting.messages))
    with (
        Ledger.open(url, create=False, patience=patience) as ledger,
        pytest.raises(StorageError, match="is locked by another process"),
    ):
        ledger.take_over(1, "second")
    assert len(waiting.messages) == 1


def test_permanent_error_is_raised_without_waiting(locked):
    url, other = locked
    other.execute("COMMIT")
    other.execute("DROP TABLE studies")
    waiting = Waiting()
    with (
        Ledger.open(url, create=False, patience=Patience(seconds=1e9, tell=waiting)) as ledger,
        pytest.raises(StorageError, match="no such table"),
    ):
        ledger.studies()
    assert waiting.messages == []


@pytest.mark.postgres
def test_keeper_reports_waiting_for_an_unreachable_server(postgres_url, postgres_server, values):
    waiting = Waiting(postgres_server.start)
    with Ledger.open(postgres_url, patience=Patience(seconds=60, tell=waiting)) as ledger:
        key = ledger.create_study(values.study()).id
        postgres_server.stop()
        assert ledger.take_over(key, "second") == 1
    assert "cannot be reached; waiting for it, 60 s at most" in waiting.messages[0]
    assert waiting.messages[-1] == ""
