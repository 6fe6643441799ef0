"""File modes: all written files follow the umask, weights and databases included."""

import os
from collections.abc import Iterator

import numpy as np
import pytest
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from dashboards.web.folder import export_study
from deltaspace.commands.main import main
from studies.exports.optuna import export_optuna
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.maintenance import back_up
from trial_runner.tasks.prepare import write_cached


@pytest.fixture(params=[0o002, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.slow
def test_modes_of_files_and_folders_follow_the_umask(umask, tmp_path):
    here = tmp_path / "here"
    here.mkdir()
    url = f"sqlite:///{here / 'ledger.db'}"
    assert launch(specification(here / "artefacts", "inline", 6), storage_url=url, factory=TrivialFactory()).finished
    with Ledger.open(url) as ledger:
        back_up(ledger, here / "backup.db")
        export_optuna(ledger, "trivial", here / "optuna.db")
        kept = {path for path in here.rglob("*") if path.is_file()}
    export_study(url, "trivial", here / "pages")
    write_cached(here / "cache", "task", {}, {"ids": np.arange(3)})
    assert main(["query", "SELECT number FROM trials", "--output", str(here / "rows.csv"), "--storage", url]) == 0
    files = {path for path in here.rglob("*") if path.is_file()}
    assert any("attempt-" in path.parent.name for path in kept)
    assert {path.name for path in files} >= {"backup.db", "optuna.db", "task.safetensors", "rows.csv"}
    wrong = {path for path in files if path.stat().st_mode & 0o777 != 0o666 & ~umask}
    wrong |= {path for path in here.rglob("*") if path.is_dir() and path.stat().st_mode & 0o777 != 0o777 & ~umask}
    assert wrong == set()
