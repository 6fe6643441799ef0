"""The notebook: what it says can be done, done."""

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


def done(arguments: list[str], folder: Path) -> str:
    """What a fresh interpreter prints in an empty folder, on one thread."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("DELTASPACE_STORAGE", None)
    finished = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_notebook_is_stored_without_outputs():
    cells = code_cells(NOTEBOOK)
    assert len(cells) > 5
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)


@pytest.mark.parametrize("source", ["".join(cell["source"]) + "\n" for cell in code_cells(NOTEBOOK)])
def test_only_public_names_are_used(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "deltaspace":
            assert node.attr in deltaspace.__all__
        assert not isinstance(node, ast.ImportFrom)


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs(tmp_path):
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
