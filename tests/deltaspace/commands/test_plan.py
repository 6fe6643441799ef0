"""``deltaspace plan``: a table for people, numbers for programs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import deltaspace
from deltaspace.commands.main import main


@pytest.fixture
def study(tiny_backbone: Callable[[str], Path], tmp_path: Path) -> Path:
    backbone = tmp_path / "backbone"
    backbone.mkdir()
    (backbone / "config.json").write_text((tiny_backbone("roberta") / "config.json").read_text())
    file = tmp_path / "study.yaml"
    task = f"{{folder: {tmp_path}, text: [text], label: label}}"
    file.write_text(f"name: planned\nbackbone: {backbone}\ntask: {task}\nbudget: 5%\ntrials: 8\n")
    return file


@pytest.mark.slow
def test_a_study_is_planned_without_weights_data_or_tokenizer(study, capsys):
    planned = deltaspace.plan(
        study, overrides={"training.batch_tokens": 640, "task.max_tokens": 64}, gpu="24GB", pack=2
    )
    text = " ".join(str(planned).split())
    for part in ("planned on", "; 10 texts of 64 tokens a step", "RTX 4090", "a trial"):
        assert part in text
    options = ["--set", "training.batch_tokens=640", "--set", "task.max_tokens=64", "--gpu", "24GB", "--pack", "2"]
    assert main(["plan", str(study), *options, "--json"]) == 0
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert (device["gpu"]["name"], device["slots"], device["fits"]) == ("RTX 4090", 2, True)
    assert 0 < device["trial_bytes"] < device["used_bytes"] < device["gpu"]["memory_bytes"]
    assert planned.plan.devices[0].used_bytes == device["used_bytes"]


def test_an_unknown_gpu_is_one_line(study, capsys):
    assert main(["plan", str(study), "--gpu", "abacus"]) == 2
    assert capsys.readouterr().err.startswith("deltaspace: a GPU must be a size such as 80GB")
