"""A database file that is deleted or replaced under a ledger takes nothing more."""

import shutil
import sqlite3

import pytest

from studies.errors import StorageError
from studies.ledger.ledger import Ledger


def vanish(file):
    for one in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        one.unlink(missing_ok=True)


@pytest.fixture
def ledger(file):
    with Ledger.open(f"sqlite:///{file}") as ledger:
        yield ledger


@pytest.mark.parametrize("what", ["write", "read"])
def test_deleted_file_is_reported_and_not_recreated(what, file, ledger, values):
    study = ledger.create_study(values.study())
    vanish(file)
    with pytest.raises(StorageError, match=r"was deleted while in use\. ") as error:
        ledger.take_over(study.id, "keeper") if what == "write" else ledger.studies()
    assert "\n" not in str(error.value)
    assert not file.exists()


def test_a_file_put_in_its_place_is_left_as_it_is(file, ledger, values, tmp_path):
    study = ledger.create_study(values.study())
    ledger.take_over(study.id, "keeper")
    copy = tmp_path / "copy.db"
    with sqlite3.connect(file) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    vanish(file)
    shutil.move(copy, file)
    before = file.read_bytes()
    with pytest.raises(StorageError, match="was replaced by another file while in use"):
        ledger.record_event(study.id, "note", "lost")
    assert file.read_bytes() == before


@pytest.mark.parametrize("is_replaced", [True, False])
def test_later_connection_refuses_a_replaced_database(file, ledger, values, is_replaced):
    study = ledger.create_study(values.study())
    other = b"a file of somebody else's"

    def meanwhile(link):
        vanish(file)
        if is_replaced:
            file.write_bytes(other)
        with pytest.raises(StorageError, match="replaced by another file" if is_replaced else "deleted"):
            ledger.record_event(study.id, "note", "by a second connection of the pool")

    ledger.read(meanwhile)
    assert [(one.name, one.read_bytes()) for one in file.parent.glob("x.db*")] == [("x.db", other)] * is_replaced


def test_a_file_that_is_put_back_is_written_again(file, ledger, values, tmp_path):
    study = ledger.create_study(values.study())
    aside = file.rename(tmp_path / "aside.db")
    with pytest.raises(StorageError, match="deleted"):
        ledger.record_event(study.id, "note", "while it was away")
    aside.rename(file)
    ledger.record_event(study.id, "note", "back")
    assert [event.text for event in ledger.events(study.id)][-1] == "back"
