"""Version, and facts for a bug report."""

import json
import platform
from importlib.metadata import version

import pytest

from studies.ledger.migrations import NEWEST


def test_a_report_has_versions_machine_schema_and_storage(printed, sample_storage):
    facts = json.loads(printed("version", "--verbose", "--json", "--storage", sample_storage))
    packages = ("torch", "transformers", "datasets", "accelerate", "optuna", "ray", "sqlalchemy")
    assert {name: facts[name] for name in packages} == {name: version(name) for name in packages}
    assert facts["python"].startswith(platform.python_version())
    assert facts["platform"] == platform.platform()
    assert facts["schema"] == f"version {NEWEST}"
    assert facts["storage"] == f"{sample_storage}, 1 study"
    assert {"cpu", "gpus"} <= set(facts)
    lines = printed("version", "--verbose", "--storage", sample_storage).splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [list(fact) for fact in facts.items()]


@pytest.mark.parametrize(
    "url", ["postgresql://me:secret@127.0.0.1:1/none", "postgresql://me@127.0.0.1:1/none?password=secret"]
)
def test_the_password_of_a_storage_is_hidden(printed, url):
    out = printed("version", "--verbose", "--storage", url)
    assert "secret" not in out
    assert "127.0.0.1" in out


def test_a_storage_that_is_not_there_is_no_failure(printed, tmp_path):
    assert "no database at sqlite:" in printed("version", "--verbose", "--storage", f"sqlite:///{tmp_path / 'a.db'}")
    assert list(tmp_path.iterdir()) == []
