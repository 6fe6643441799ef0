"""``deltaspace check``: what a study would be, by looking at its data and training for a moment."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.export_commands import write_rows

import deltaspace
from deltaspace.commands.main import main
from trial_runner.requests import TrialRequest

WORDS = ("good", "bad")
STUDY: dict[str, Any] = {
    "name": "reviews",
    "backbone": "embedded",
    "task": {"folder": "reviews", "text": "text", "label": "label", "max_tokens": 8},
    "budget": "0.5%",
    "trials": 30,
    "training": {"steps": 8, "batch_size": 4},
    "fleet": {"backend": "inline", "pack": 2},
}

Run = Callable[..., str]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a study of 120 reviews, all of which are cut."""
    monkeypatch.chdir(tmp_path)
    words = [WORDS[number % 3 == 0] for number in range(120)]
    rows = [{"text": f"number {n} was rather {word} to look at", "label": word} for n, word in enumerate(words)]
    write_rows(tmp_path / "reviews" / "train.jsonl", rows)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    return tmp_path / "study.yaml"


@pytest.mark.slow
def test_a_study_is_looked_over(study, capsys):
    assert main(["check", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    examples = found["data"]["examples"]
    assert sum(examples.values()) == 120
    assert sum(found["data"]["labels"]["train"].values()) == examples["train"]
    assert found["data"]["constant_score"] == found["data"]["labels"]["validation"]["good"] / examples["validation"]
    assert found["speed"]["slots"] == 2
    assert found["speed"]["step_seconds"] > 0
    assert found["speed"]["slot_bytes"] > 0
    assert found["forecast"]["most_seconds"] == pytest.approx(30 * found["forecast"]["trial_seconds"])
    assert found["machine"]["workers"] == 1
    warnings = " ".join(found["warnings"])
    assert " examples are cut to 8 tokens. Raise task.max_tokens." in warnings
    assert "cannot show a difference of 2 points" in warnings
    assert list(study.parent.glob("*.db")) == []


def test_a_large_model_is_timed_on_one_example_of_one_trial(study, capsys, monkeypatch):
    from studies.resource_estimates import speed
    from trial_runner.packs.pack import TrialPack

    own, admitted, ticks = TrialPack.admit, [], itertools.count()
    train, steps = TrialPack.advance, []

    def admit(pack: TrialPack, request: TrialRequest) -> int:
        admitted.append(request.plan.batch_size)
        return own(pack, request)

    monkeypatch.setattr(TrialPack, "admit", admit)
    monkeypatch.setattr(TrialPack, "advance", lambda pack, count: (steps.append(count), train(pack, count))[1])
    monkeypatch.setattr(speed, "LARGE_STEP", 0.0)
    monkeypatch.setattr(speed, "clock", lambda: float(next(ticks)))
    assert main(["check", str(study), "--json"]) == 0
    printed = capsys.readouterr()
    assert admitted == [1], "steps and measurements of one trial"
    assert sum(steps) == 3, "a step takes seconds"
    found = json.loads(printed.out)["speed"]
    assert (found["slots"], found["step_seconds"]) == (2, 4.0), "a second an example, 4 examples a step"
    assert not found["is_alone"], "the study file says packs of two"
    assert not printed.err


def test_check_without_steps_does_not_train(study, capsys, monkeypatch):
    import studies.preflight

    monkeypatch.setattr(studies.preflight, "measured_speed", None)
    assert main(["check", str(study), "--no-steps", "--set", "trials=3"]) == 0
    printed = capsys.readouterr().out
    assert "constant prediction" in printed
    assert "carved from train by a hash" in printed
    assert "this study searches nothing" in printed


def test_problem_of_the_data_is_one_line(study, capsys):
    assert main(["check", str(study), "--set", "task.label=lable"]) == 2
    assert "must have a column 'lable'; it has: text, label" in capsys.readouterr().err


def test_python_shows_the_same(study):
    shown = str(deltaspace.check(study, takes_steps=False))
    assert shown.splitlines()[0] == "reviews on embedded"
    assert "look at this first" in shown


@pytest.mark.slow
@pytest.mark.parametrize("family", ["t5", "gpt2"])
def test_texts_are_timed_too(family, study, tiny_backbone, capsys):
    rows = [{"from": f"words {n} and more", "to": f"{n} words"} for n in range(90)]
    write_rows(study.parent / "reviews" / "train.jsonl", rows)
    task = {"kind": "translation", "folder": "reviews", "source": "from", "target": "to", "max_tokens": 32}
    task |= {"max_target_tokens": 16}
    budget = {"backbone": str(tiny_backbone(family)), "budget": 2000}
    study.write_text(yaml.safe_dump({**STUDY, **budget, "task": task}))
    assert main(["check", str(study), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["data"]["constant_score"] is None
    assert found["speed"]["final_example_seconds"] > 0


def test_unusable_backbone_is_reported_with_its_problem(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DELTASPACE_CACHE", str(tmp_path / "cache"))
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    config = {"model_type": "gpt_oss", "vocab_size": 90, "head_dim": 16, "num_local_experts": 2, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert main(["check", "--backbone", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["usable"], found["table"]) == (False, "model")
    assert "got s_aux" in found["problem"]
    assert main(["check", "--backbone", str(tmp_path)]) == 1
    assert "cannot be used" in capsys.readouterr().out


def test_a_check_is_of_a_study_or_of_a_backbone(study, capsys):
    assert main(["check"]) == 2
    assert main(["check", str(study), "--backbone", "embedded"]) == 2
    assert "either a study or --backbone" in capsys.readouterr().err
    assert main(["check", "--backbone", str(study.parent / "nothing")]) == 2
