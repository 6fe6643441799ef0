"""``deltaspace space``: the dimensions, the size and the samples of a study's search space."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deltaspace.commands.main import main

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"
ROBERTA = str(BACKBONES / "roberta_base")

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path, printed) -> Run:
    """Print the space of a study on RoBERTa-base, or of the options."""
    study = tmp_path / "study.yaml"
    study.write_text(f"name: wide\nbackbone: {ROBERTA}\ntask: {{name: docstrings}}\nbudget: 0.5%\n")
    return lambda *options: printed("space", str(study), *options)


def read(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    return data


@pytest.fixture
def usual(run) -> dict[str, Any]:
    """Return the default space as JSON."""
    return read(run("--json"))


def row(text: str, name: str) -> list[int]:
    """Return the numbers of a row of the table of sizes."""
    sizes = text.partition("product of the dimensions")[2]
    (line,) = [line for line in sizes.splitlines() if line.startswith(name)]
    return [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", line.removeprefix(name))]


def test_the_space_of_a_study_is_shown_with_its_dimensions_and_size(run, usual):
    text = run()
    assert "at most 623,228 parameters, 0.500% of the backbone" in text
    assert re.search(r"attention +form +softmax_memory, bottleneck, lowrank, diag, const *\n", text)
    assert re.search(r"ffn +form +bottleneck, lowrank, softmax_memory, diag, const *\n", text)
    assert "attention_share" in text
    assert "learning_rate.lowrank" in text
    assert "learning_rate.full" not in text
    assert "mam_adapter" in text
    for part, size in usual["sizes"].items():
        assert row(text, part) == [size["product"], size["one_edit"], 0, size["one_edit"]]
    assert row(text, "all together") == [usual["product"], usual["proposed"]]


def test_samples_have_words_formulas_counts_and_a_share_of_the_budget(run, usual):
    data = read(run("--draw", "6", "--seed", "3", "--json"))
    assert len(data["samples"]) == 6
    text = run("--draw", "6", "--seed", "3")
    for number, sample in enumerate(data["samples"], start=1):
        stored = sample["counts"]["stored"]
        assert 0 < stored <= data["budget"] == 623_228
        assert sample["share_of_budget"] == pytest.approx(stored / 623_228)
        assert sample["sentence"]
        assert re.search(rf"(?m)^{number}\. ", text)
        assert f"stores {stored:,} parameters, {100 * stored / 623_228:.1f}% of the budget" in text
        assert all(edit["formula"] and edit["sublayers"] == 12 for edit in sample["edits"])
    assert data["samples"] != read(run("--draw", "6", "--seed", "4", "--json"))["samples"]
    assert usual["samples"] == []


def test_published_points_alone_have_a_space_too(run):
    only = ("--set", "space={attention_forms: [], ffn_forms: []}", "--set", "search.published=['lora_qv:r=8']")
    data = read(run(*only, "--draw", "3", "--json"))
    assert (data["published"], data["samples"], data["proposed"]) == (["lora_qv:r=8"], [], 0)
    assert "published methods that fit: lora_qv:r=8" in run(*only)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("nowhere.yaml",), 2, "there is no nowhere.yaml"),
        (("docstrings", "--draw", "-1"), 2, "--draw"),
        (("docstrings", "--set", "space.layers=[most]"), 2, "space.layers[0]"),
        (("docstrings", "--set", "budget=10"), 2, "must allow at least one configuration; got 10 parameters"),
    ],
)
def test_invalid_space_is_reported(options, code, message, capsys):
    assert main(["space", *options]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
