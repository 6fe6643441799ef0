"""URLs of storages as people and environments write them."""

import pytest

from studies.errors import StorageUrlError
from studies.ledger.engine import StorageAddress
from studies.storage import STORAGE_VARIABLE, storage_url

URL = "sqlite:///mine.db"


@pytest.mark.parametrize("around", ["{}\r", "{}\r\n", "{} ", " {}\t", "{}\u00a0"])
def test_blanks_around_a_storage_url_open_no_other_database(around, monkeypatch):
    assert storage_url(around.format(URL)) == URL
    assert StorageAddress.parse(around.format(URL)) == StorageAddress.parse(URL)
    monkeypatch.setenv(STORAGE_VARIABLE, around.format(URL))
    assert storage_url() == storage_url(" ") == URL
    monkeypatch.setenv(STORAGE_VARIABLE, around.format(""))
    assert storage_url() == "sqlite:///deltaspace.db"


def test_database_file_is_found_despite_blanks(tmp_path):
    (tmp_path / "mine.db").touch()
    assert storage_url(f"{tmp_path}/mine.db\r") == f"sqlite:///{tmp_path}/mine.db"


@pytest.mark.parametrize(
    ("url", "character"), [("sqlite:///a\rb.db", r"'\\r' at character 12"), ("sqlite:///\udcff", "1")]
)
def test_storage_url_that_is_no_text_is_refused(url, character):
    with pytest.raises(StorageUrlError, match=f"a storage URL must be UTF-8 text without controls; got .*{character}"):
        StorageAddress.parse(url)
