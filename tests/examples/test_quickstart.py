"""The notebook: what it says can be done, done."""

import ast

import pytest
from support.notebooks import code_cells
from support.processes import ROOT, printed_by

import deltaspace

NOTEBOOK = ROOT / "examples" / "quickstart.ipynb"


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
    printed = printed_by(ROOT / "tests" / "support" / "notebooks.py", NOTEBOOK, folder=tmp_path)
    for part in (
        "sentence",
        "functional form",
        "test_mean",
        "delta.safetensors",
        "prediction",
    ):
        assert part in printed
    assert {path.name for path in tmp_path.iterdir()} >= {"quickstart.db", "winner"}
