"""The notebook, and the snippet of the README: what they say can be done, done."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.notebooks import code_cells

import deltaspace

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"
SNIPPET = """
import deltaspace

study = deltaspace.launch("docstrings", overrides={"trials": 26, "training.steps": 200})
print(study.leaderboard(top=5)[["number", "score", "method", "sentence"]])   # a pandas frame
print(study.best, study.best.configuration)   # what was found, in words and as a value
study.query("select ffn_form, max(score) from trials group by ffn_form")

confirmed = study.confirm(top=1, seeds=5, against=["mam_adapter", "lora_qv"])    # test data, fresh seeds
print(confirmed)                              # means, deviations, and what follows from them

study.export("winner")                        # safetensors, JSON and a model card
print(deltaspace.predict("winner", ["Return the mean of an array along an axis."]))
delta = deltaspace.open_delta("winner")       # attached to the frozen backbone, until delta.detach()
"""
SMALLER = {
    '"trials": 26, "training.steps": 200': (
        '"trials": 3, "training.steps": 8, "pruning.first_rung_steps": 4, "search.published": ["lora_qv"], '
        '"task.examples.validation": 50, "fleet.backend": "inline"'
    ),
    'seeds=5, against=["mam_adapter", "lora_qv"]': 'seeds=2, against=["lora_qv"]',
}


def done(arguments: list[str], folder: Path) -> str:
    """What a fresh interpreter prints in an empty folder, on one thread."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("DELTASPACE_STORAGE", None)
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = code_cells(NOTEBOOK)
    assert len(cells) > 5
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)


@pytest.mark.parametrize("source", ["".join(c["source"]) + "\n" for c in code_cells(NOTEBOOK)] + [SNIPPET])
def test_only_public_names_are_used(source: str) -> None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "deltaspace":
            assert node.attr in deltaspace.__all__
        assert not isinstance(node, ast.ImportFrom)


def test_the_snippet_of_the_readme_has_at_most_14_lines() -> None:
    assert len(SNIPPET.strip().splitlines()) <= 14


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs(tmp_path: Path) -> None:
    printed = done([str(ROOT / "tests" / "support" / "notebooks.py"), str(NOTEBOOK)], tmp_path)
    for part in (
        "sentence",
        "functional form",
        "test_mean",
        "delta.safetensors",
        "prediction",
    ):
        assert part in printed
    assert {path.name for path in tmp_path.iterdir()} >= {"quickstart.db", "winner"}


@pytest.mark.slow
def test_the_snippet_of_the_readme_runs(tmp_path: Path) -> None:
    snippet = SNIPPET
    for whole, part in SMALLER.items():
        assert whole in snippet
        snippet = snippet.replace(whole, part)
    printed = done(["-c", snippet], tmp_path)
    assert "sentence" in printed
    assert "probability" in printed
