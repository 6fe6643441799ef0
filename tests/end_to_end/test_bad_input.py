"""Mistakes of a user: one clear line, the right exit status, no partial work."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.export_commands import write_splits
from support.ledger_query import query_study
from support.processes import PROGRAM, run_python

from deltaspace.commands.main import main
from studies.records import TrialState

WORDS = ("good", "fine", "great", "nice", "bad", "poor", "awful", "worse")


def rows(count: int, offset: int) -> list[dict[str, Any]]:
    """Return texts whose label depends on their words."""
    return [
        {"text": f"{WORDS[(index * 3 + offset) % 8]} {index} {offset}", "label": int((index * 3 + offset) % 8 < 4)}
        for index in range(count)
    ]


@pytest.fixture
def study(tmp_path: Path, tiny_backbone: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return a valid study of a tiny backbone and forty texts in one process, of which tests break one part."""
    monkeypatch.chdir(tmp_path)
    write_splits(tmp_path / "data", rows, 40, 12, 12)
    return {
        "name": "broken",
        "backbone": str(tiny_backbone("roberta")),
        "task": {"folder": "data", "text": "text", "label": "label", "max_tokens": 16},
        "budget": 400,
        "trials": 3,
        "training": {"steps": 4, "batch_size": 4},
        "search": {"published": ["lora_qv", "mam_adapter"], "sampler": "random"},
        "fleet": {"backend": "inline"},
    }


def launch(study: dict[str, Any], *options: str) -> int:
    Path("study.yaml").write_text(yaml.safe_dump(study))
    return main(["launch", "study.yaml", *options])


def refusal(study: dict[str, Any], capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Return the error of a launch that is refused before any work."""
    assert launch(study, *options) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert not Path("deltaspace.db").exists(), "nothing may be created before the study is known to be sound"
    assert not Path("deltaspace-artefacts").exists()
    return error


def change(study: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    part = study
    *parents, last = path.split(".")
    for key in parents:
        part = part.setdefault(key, {})
    part[last] = value
    return study


@pytest.mark.slow
def test_the_smallest_budget_that_is_named_really_fits(study, capsys):
    error = refusal(change(study, "budget", 3), capsys)
    smallest = int(error.split("the smallest that fits the study has ")[1].split(".")[0].replace(",", ""))
    change(study, "search.published", "none")
    assert launch(change(study, "budget", smallest)) == 0
    trials = query_study("sqlite:///deltaspace.db", "broken", lambda ledger, study: ledger.trials(study.id))
    assert {trial.stored_parameters for trial in trials} == {smallest}
    capsys.readouterr()
    Path("deltaspace.db").unlink()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("deberta-v2", "pos_att_type of a deberta-v2 config must be 'p2c|c2p'"),
        ("swin", "does not compute from tokens"),
        ("robertta", "Did you mean 'roberta'?"),
    ],
)
def test_unusable_backbone_is_refused_with_alternatives(study, capsys, tmp_path, family, expected):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": family}))
    error = refusal(change(study, "backbone", str(folder)), capsys)
    assert expected in error
    assert family in error


def test_a_diverging_trial_fails_with_its_step_and_its_neighbours_finish(study, capsys):
    change(study, "space.learning_rates", {"lowrank": [1e30, 1e31]})
    change(study, "space.attention_forms", ["softmax_memory"])
    change(study, "space.ffn_forms", ["bottleneck"])
    change(study, "pruning", {"first_rung_steps": None})
    assert launch(change(study, "fleet.pack", 3)) == 0
    capsys.readouterr()
    trials = query_study("sqlite:///deltaspace.db", "broken", lambda ledger, study: ledger.trials(study.id))
    diverged = [trial for trial in trials if trial.method == "lora_qv"]
    assert [trial.state for trial in diverged] == [TrialState.FAILED]
    assert "at step" in (diverged[0].reason or "")
    others = [trial for trial in trials if trial.method != "lora_qv"]
    assert {trial.state for trial in others} == {TrialState.COMPLETE}
    assert len(others) == 2


def test_a_refusal_is_one_line_and_exit_status_two_in_a_shell(study):
    Path("study.yaml").write_text(yaml.safe_dump(change(study, "budget", 3)))
    done = run_python("-c", PROGRAM, "launch", "study.yaml", folder=Path.cwd())
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip().splitlines()[-1].startswith("deltaspace: the budget must allow")
    assert "Traceback" not in done.stderr
