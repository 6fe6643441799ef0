"""The same study file with the same seed, launched twice on one machine, gives the same table of trials."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.letters import letters_study, write_letters
from support.processes import PROGRAM, printed_by

from deltaspace.commands.main import main
from studies.search.samplers import STARTUP_TRIALS

Row = dict[str, Any]
Table = list[Row]
Launch = Callable[..., Path]

TRIALS = 16
PUBLISHED = ("lora_qv", "mam_adapter")
MODELLED = 3
"""Trials, at least, that are proposed by what the sampler has fitted."""

TIMES = {"created_at", "ended_at", "heard_at", "seconds"}
KEYS = {"id", "study_id", "trial_id"}


def _launch_here(arguments: list[str]) -> None:
    """Launch in this process, on one thread as in the other, since two threads sum in another order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        assert main(arguments) == 0


def _launch_in_a_process(arguments: list[str]) -> None:
    """Launch in a new process, with another order of sets."""
    printed_by("-c", PROGRAM, *arguments, PYTHONHASHSEED="7")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for all launches."""
    return tmp_path_factory.mktemp("twice")


@pytest.fixture(scope="module")
def launched(tiny_backbone: Callable[..., Path], place: Path) -> Launch:
    """Launch one study file into a fresh storage and return the file of that storage."""
    write_letters(place / "letters", validation=30)
    study = letters_study(
        place,
        tiny_backbone("roberta", 0.1),
        trials=TRIALS,
        training={"steps": 6, "batch_size": 8, "precision": "fp32", "head_learning_rate": 0.05},
        pruning={"first_rung_steps": 2},
        search={"sampler": "tpe", "published": list(PUBLISHED)},
        fleet={"backend": "inline"},
    )
    (place / "letters.yaml").write_text(yaml.safe_dump(study))

    def launch(name: str, *options: str, by: Callable[[list[str]], None] = _launch_here) -> Path:
        file = place / f"{name}.db"
        whereto = ["--storage", f"sqlite:///{file}", "--set", f"fleet.artefacts={place / name}"]
        by(["launch", str(place / "letters.yaml"), "--quiet", "--pack", "3", *whereto, *options])
        return file

    return launch


@pytest.fixture(scope="module")
def first(launched: Launch) -> Path:
    """Launch the study once."""
    return launched("first")


def _rows(file: Path, sql: str) -> Table:
    with closing(sqlite3.connect(file)) as link:
        link.row_factory = sqlite3.Row
        return [dict(row) for row in link.execute(sql)]


def _all_trials(file: Path) -> Table:
    return _rows(file, "SELECT * FROM trials ORDER BY number")


def table_of(file: Path) -> Table:
    """Return every column of trials and readings, and hashes of trained files, without times and keys."""
    of_trial = "FROM {0} JOIN trials ON trials.id = {0}.trial_id ORDER BY trials.number, {0}.step"
    readings = _rows(file, f"SELECT trials.number AS trial, readings.* {of_trial.format('readings')}")
    hashes = "SELECT trials.number AS trial, artefacts.kind, artefacts.step, artefacts.sha256 "
    rows = [*_all_trials(file), *readings, *_rows(file, hashes + of_trial.format("artefacts"))]
    return [{name: value for name, value in row.items() if name not in TIMES | KEYS} for row in rows]


def modelled(file: Path) -> int:
    """Count the trials that were proposed after enough ended ones to fit the sampler's model."""
    trials = [
        (row["state"], datetime.fromisoformat(row["created_at"]), datetime.fromisoformat(row["ended_at"]))
        for row in _all_trials(file)
    ]
    shown = [ended for state, _, ended in trials if state in ("complete", "pruned")]
    return sum(sum(ended <= created for ended in shown) >= STARTUP_TRIALS for _, created, _ in trials)


def check_is_a_real_search(file: Path) -> None:
    """Check that the search has pruned and complete trials, different scores, and model-based proposals."""
    trials = _all_trials(file)
    assert len(trials) == TRIALS
    assert {row["state"] for row in trials} == {"complete", "pruned"}
    assert len({row["last_score"] for row in trials}) > 3
    assert modelled(file) >= MODELLED


@pytest.mark.slow
def test_another_seed_gives_another_table(first, launched):
    other = launched("other", "--seed", "4")
    for ours, theirs in zip(_all_trials(first), _all_trials(other), strict=True):
        assert ours["seed"] != theirs["seed"]
        # published methods begin at the rates that are expected to be best, whatever the seed
        assert (ours["fingerprint"] == theirs["fingerprint"]) == (ours["number"] < len(PUBLISHED))
    assert table_of(other) != table_of(first)


@pytest.mark.slow
def test_one_trial_at_a_time_gives_the_same_table_twice(launched):
    one, again = (launched(name, "--pack", "1") for name in ("one", "again"))
    check_is_a_real_search(one)
    assert table_of(one) == table_of(again)


@pytest.mark.slow
def test_another_process_gives_the_same_table(first, launched):
    check_is_a_real_search(first)
    assert table_of(launched("elsewhere", by=_launch_in_a_process)) == table_of(first)


@pytest.mark.slow
def test_the_factored_search_gives_the_same_table_in_another_process(launched):
    factored = ("--set", "search.sampler=factored")
    here = launched("factored", *factored)
    check_is_a_real_search(here)
    assert table_of(launched("factored-elsewhere", *factored, by=_launch_in_a_process)) == table_of(here)
