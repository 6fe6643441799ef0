"""A search and its confirmation on real backbones: deltas are trained, and the test split is measured."""

import json

import pytest
import yaml
from support.letters import letters_study, write_letters
from support.violations import violations

from deltaspace.commands.main import main
from studies.ledger.ledger import Ledger
from studies.records import TrialState

TEST_EXAMPLES = 7
"""Shares a factor with no other split, so that an accuracy tells where it was measured."""


def confirmed(url: str, capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["confirm", "letters", "--json", "--quiet", *arguments]) == 0, capsys.readouterr().err
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    with Ledger.open(url, read_only=True) as ledger:
        study = ledger.study("letters-confirm")
        assert violations(ledger, study.id, rung_steps=()) == []
        trials = ledger.trials(study.id)
    assert all(trial.state is TrialState.COMPLETE for trial in trials), [trial.reason for trial in trials]
    return found


def test_a_search_on_a_tiny_backbone_is_confirmed_on_the_test_split(tiny_backbone, tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    monkeypatch.setenv("DELTASPACE_STORAGE", url)
    write_letters(tmp_path / "letters", test=TEST_EXAMPLES)
    study = letters_study(
        tmp_path,
        tiny_backbone("roberta"),
        trials=5,
        search={"sampler": "random", "published": ["mam_adapter", "lora_qv"]},
        fleet={"backend": "inline", "pack": 4, "artefacts": str(tmp_path / "artefacts")},
    )
    (tmp_path / "letters.yaml").write_text(yaml.safe_dump(study))
    assert main(["launch", str(tmp_path / "letters.yaml"), "--quiet"]) == 0
    found = confirmed(url, capsys, "--top", "2", "--seeds", "2")
    result = found["confirmation"]
    assert isinstance(result, dict)
    labels = [one["label"] for one in result["contenders"]]
    assert {"mam_adapter", "lora_qv", "full_finetuning"} <= set(labels)
    scores = [score for one in result["contenders"] for score in one["scores"]]
    correct = [score * TEST_EXAMPLES for score in scores]
    assert correct == pytest.approx([round(count) for count in correct])
    assert any(0 < score < 1 for score in scores)
    baselines = [one["label"] for one in result["contenders"][1:] if one["baselines"]]
    assert [one["baseline"] for one in result["comparisons"]] == baselines
