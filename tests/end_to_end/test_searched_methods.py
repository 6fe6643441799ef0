"""Launch of a study of given published methods, from its first trial to an adapter of peft."""

import json
from pathlib import Path

import pytest

from deltaspace.commands.main import main
from studies.ledger.ledger import Ledger

STUDY = """\
name: tiny
backbone: embedded
task: {folder: data, text: text, label: label}
budget: 0.5%
training: {steps: 4, batch_size: 4}
space: {rank: [1, 4]}
fleet: {backend: inline, pack: 2}
"""
LINES = {"a": "good fine nice", "b": "bad poor sad"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    for place, split in enumerate(("train", "validation", "test")):
        rows = [f"{LINES[label]} {place}{number},{label}" for number in range(16) for label in LINES]
        (tmp_path / "data" / f"{split}.csv").write_text("\n".join(["text,label", *rows, ""]))
    (tmp_path / "tiny.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_launch_of_methods_tunes_them_alone_and_continues(folder, capsys):
    methods = ["--method", "lora_qv", "--method", "lora_ffn,lora_all:s=8"]
    assert main(["launch", "tiny.yaml", *methods, "--trials", "8", "--quiet"]) == 0
    assert main(["launch", "tiny", "--trials", "13", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "13 of 13 trials of published methods ran to the end." in shown
    assert "discover" not in shown
    with Ledger.open("sqlite:///deltaspace.db", read_only=True) as ledger:
        study = ledger.study("tiny")
        trials = ledger.trials(study.id)
    assert [trial.method for trial in trials][:3] == ["lora_qv", "lora_ffn", "lora_all:s=8"]
    assert {trial.method for trial in trials} == {"lora_qv", "lora_ffn", "lora_all:s=8"}
    for trial in trials:
        assert trial.stored_parameters <= study.budget_parameters
        assert all(1 <= edit.form.width <= 4 - (edit.form.widened > 0) for edit in trial.configuration.edits)
    assert main(["verify", "tiny"]) == 0
    assert main(["export", "tiny", "best", "adapter", "--format", "peft"]) == 0
    assert json.loads((folder / "adapter" / "adapter_config.json").read_text())["r"] <= 4
    capsys.readouterr()
    assert main(["discover", "tiny"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[1].startswith("The best trial is lora_")
    assert main(["export", "tiny", "trials.db", "--format", "optuna"]) == 0
    # other methods are other settings
    assert main(["launch", "tiny.yaml", "--method", "lora_qv", "--quiet"]) == 2
    assert 'space.methods: ["lora_qv", "lora_ffn", "lora_all:s=8"] -> ["lora_qv"]' in capsys.readouterr().err
