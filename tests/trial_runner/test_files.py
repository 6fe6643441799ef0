"""A folder that is there whole or not at all."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from trial_runner.errors import ExportError
from trial_runner.files import new_folder

WEIGHTS = save({"weight": torch.arange(6.0)})


def test_what_was_written_is_there(tmp_path: Path) -> None:
    with new_folder(tmp_path / "export") as place:
        (place / "model.safetensors").write_bytes(WEIGHTS)
        (place / "facts.json").write_text("{}")
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == ["facts.json", "model.safetensors"]


@pytest.mark.parametrize(
    ("name", "content"), [("model.safetensors", WEIGHTS[:-4]), ("model.safetensors", b""), ("facts.json", b'{"a":')]
)
def test_what_cannot_be_read_again_is_no_export(tmp_path: Path, name: str, content: bytes) -> None:
    with (
        pytest.raises(ExportError, match=f"must be written; got: {name} does not hold what was written"),
        new_folder(tmp_path / "export") as place,
    ):
        (place / name).write_bytes(content)
    assert list(tmp_path.iterdir()) == []
