"""Predictions that cannot be written: one line says where and why."""

import errno
from pathlib import Path
from typing import Never

import pytest

from studies.errors import StudiesError
from studies.exports import inference


def test_unwritable_predictions_are_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> Never:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(inference, "whole_file", refuse)
    output = tmp_path / "out.jsonl"
    with pytest.raises(StudiesError) as caught:
        inference.write_rows(output, [], [])
    assert str(caught.value) == f"cannot write predictions to {output}: permission denied. Choose another file."
