"""``deltaspace train``: one configuration, trained without a search, in a folder that stands on its own."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.export_commands import write_splits

from search_space.codec import configuration_from_json
from studies.study_file.parser import example_names
from trial_runner.tasks import EMBEDDED_TASKS

README = Path(__file__).parents[3] / "README.md"

Train = Callable[..., tuple[int, str, str]]


def sentences(size: int, seed: int) -> list[dict[str, str]]:
    """Return rows whose label depends on an x among the words."""
    draw = random.Random(seed)
    rows = []
    for row in range(size):
        words = [draw.choice(["red", "blue", "hill", "sea"]) for _ in range(draw.randint(2, 5))]
        rows.append({"text": " ".join([*words, *["x"] * (row % 2)]), "label": ["none", "some"][row % 2]})
    return rows


@pytest.fixture(scope="module")
def study(tiny_backbone: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a study file of a task of two labels on a tiny encoder."""
    folder = tmp_path_factory.mktemp("train")
    write_splits(folder / "task", sentences, 24, 12, 12)
    mapping = {
        "name": "reviews",
        "backbone": str(tiny_backbone("roberta")),
        "task": {"folder": "task", "text": "text", "label": "label", "max_tokens": 16},
        "budget": 900,
        "training": {"steps": 200, "batch_size": 8, "precision": "fp32", "head_learning_rate": 1e-2},
        "pruning": {"first_rung_steps": 25},
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(mapping))
    return folder / "study.yaml"


@pytest.fixture
def train(study, monkeypatch, ran) -> Train:
    """Run the command on the study with three steps; return its exit code, stdout and stderr."""
    monkeypatch.chdir(study.parent)
    usual = ("--task", str(study), "--steps", "3")
    return lambda what, output, *options: ran("train", what, *usual, "--output", str(output), *options)


def facts_of(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "delta.json").read_text())
    return facts


def test_a_method_is_resized_to_the_budget_and_trained_into_a_folder(train, study, tmp_path):
    code, out, err = train("lora_qv", tmp_path / "lora", "--budget", "600", "--json")
    assert code == 0, err
    result = json.loads(out)
    assert [reading["step"] for reading in result["readings"]] == [3]
    *lines, step = [line.split(":")[0] for line in err.splitlines()]
    assert lines == ["train", "train", "validation", "test"]  # of rows that are dropped, and of texts that are cut
    assert step == "step 3 of 3"
    assert 500 < result["stored_parameters"] <= 600
    assert result["files"] == ["README.md", "delta.json", "delta.safetensors"]
    facts = facts_of(tmp_path / "lora")
    assert facts["counts"]["stored"] == result["stored_parameters"]
    assert facts["scores"]["score"] == result["score"] == result["readings"][-1]["score"]
    assert (facts["study"], facts["trial"], facts["method"]) == (None, None, "lora_qv")
    assert not list(study.parent.glob("*.db"))
    card = (tmp_path / "lora" / "README.md").read_text()
    assert "# lora_qv trained on" in card
    assert "without a search" in card
    assert "Not confirmed" not in card


def test_a_point_of_fixed_size_is_taken_as_it_is_unless_a_budget_is_given(train, tmp_path):
    code, out, err = train("lora_qv:r=16", tmp_path / "lora")
    assert code == 0, err
    assert facts_of(tmp_path / "lora")["counts"]["stored"] == 2 * 2 * 16 * (16 + 16)
    assert "2,048 parameters" in out
    code, out, err = train("lora_qv:r=16", tmp_path / "refused", "--budget", "2047")
    assert (code, out) == (2, "")
    assert err.splitlines() == ["deltaspace: lora_qv:r=16 stores 2,048 parameters; the budget is 2,047."]


@pytest.mark.slow
def test_exported_configuration_is_trained_to_the_same_weights(train, tmp_path):
    options = ("--seed", "5", "--learning-rate", "0.02")
    assert train("prefix_tuning:mid=6,l=2", tmp_path / "first", *options)[0] == 0
    again = train(str(tmp_path / "first" / "delta.json"), tmp_path / "again", "--seed", "5")
    assert again[0] == 0, again[2]
    other = train(str(tmp_path / "first" / "delta.json"), tmp_path / "other", "--seed", "6")
    assert other[0] == 0, other[2]
    first, second, third = (facts_of(tmp_path / name) for name in ("first", "again", "other"))
    assert first["weights"]["sha256"] == second["weights"]["sha256"] != third["weights"]["sha256"]
    assert first["trained_as"] == second["trained_as"] is not None
    assert first["learning_rates"] == second["learning_rates"] == {"attention": 0.02, "ffn": None, "head": 0.01}


@pytest.mark.slow
def test_configuration_file_is_trained_at_middle_learning_rates(train, tmp_path):
    assert train("lora_qv:r=2", tmp_path / "first")[0] == 0
    configuration = facts_of(tmp_path / "first")["configuration"]
    (tmp_path / "configuration.json").write_text(json.dumps(configuration))
    code, _, err = train(str(tmp_path / "configuration.json"), tmp_path / "again")
    assert code == 0, err
    facts = facts_of(tmp_path / "again")
    assert configuration_from_json(facts["configuration"]) == configuration_from_json(configuration)
    assert facts["method"] is None
    assert facts["learning_rates"] == facts_of(tmp_path / "first")["learning_rates"]


def test_a_folder_that_exists_is_refused_before_anything_is_trained(train, tmp_path):
    (tmp_path / "there").mkdir()
    code, out, err = train("lora_qv", tmp_path / "there")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        f"deltaspace: an export must go to a new place; {tmp_path / 'there'} is there already. "
        "Choose another or remove it."
    ]
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize(
    ("what", "options", "code", "message"),
    [
        ("lora_qw", (), 2, "no published method 'lora_qw'"),
        ("lora_qv:r=0", (), 2, "r"),
        ("missing.json", (), 2, "missing.json"),
        ("lora_qv", ("--budget", "3"), 2, "budget"),
        ("lora_qv", ("--learning-rate", "nan"), 2, "a learning rate must be a positive number; got nan."),
        ("lora_qv", ("--learning-rate", "0"), 2, "a learning rate must be a positive number; got 0.0."),
        ("lora_qv", ("--set", "task.text=body"), 2, "must have a column 'body'"),
        ("lora_qv", ("--backbone", "./nowhere"), 2, "nowhere"),
    ],
)
def test_bad_input_is_one_line_without_files(train, tmp_path, what, options, code, message):
    found, out, err = train(what, tmp_path / "new", *options)
    assert (found, out) == (code, ""), err
    (line,) = err.splitlines()
    assert line.startswith("deltaspace: ")
    assert message in line
    assert list(tmp_path.iterdir()) == []


def test_every_embedded_task_has_a_study_file_of_its_name():
    assert set(EMBEDDED_TASKS) <= set(example_names())
