"""Commands from the rows of a task to the predictions of every form of an export."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from deltaspace.commands.main import main

FORMS = {"deltaspace": [], "peft": ["--format", "peft"], "merged": ["--merge"]}
"""Options of an export."""
FIRST = "0"
"""A published method comes first."""

Rows = Sequence[Mapping[str, Any]]


def write_rows(file: Path, rows: Rows) -> None:
    """Write one row per line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_splits(folder: Path, rows_of: Callable[[int, int], Rows], *sizes: int) -> None:
    """Write the rows of train, validation and test, built from the size and number of each."""
    for number, (name, size) in enumerate(zip(("train", "validation", "test"), sizes, strict=True)):
        write_rows(folder / f"{name}.jsonl", rows_of(size, number))


def confirm(study: str, metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Show a study and confirm it; both tell the metric."""
    for command in (["show", study], ["confirm", study, "--top", "1", "--seeds", "2", "--quiet", "--json"]):
        capsys.readouterr()
        assert main(command) == 0, capsys.readouterr().err
        assert metric in capsys.readouterr().out


def predictions(study: str, rows: Rows, folder: Path) -> dict[str, list[Any]]:
    """Return the predictions of the first trial by form of its export, each in a folder of that name."""
    write_rows(folder / "inputs.jsonl", rows)
    for form, how in FORMS.items():
        assert main(["export", study, FIRST, str(folder / form), *how]) == 0
    return {form: predicted(folder / form, folder / "inputs.jsonl") for form in FORMS}


def predicted(export: Path, inputs: Path) -> list[Any]:
    """Return the predictions of an export for the lines of a file."""
    output = export.with_name(f"{export.name}.jsonl")
    assert main(["predict", str(export), "--input", str(inputs), "--output", str(output)]) == 0
    return [json.loads(line)["prediction"] for line in output.read_text().splitlines()]


def card_lines(export: Path, texts: Sequence[object] | None = None) -> str:
    """Return the Python code on the card of an export, with other texts if any are given."""
    (code,) = re.findall(r"```python\n(.*?)```", (export / "README.md").read_text(), re.DOTALL)
    return str(code if texts is None else re.sub(r"(?m)^texts = .*$", lambda _: f"texts = {texts!r}", code))
