"""``deltaspace d90`` on a real backbone of two layers: full fine-tuning and random subspaces are trained."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from deltaspace.commands.main import main


@pytest.fixture
def study_file(tmp_path: Path, tiny_backbone: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of texts in which one of two letters is more frequent."""
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    draw = random.Random(0)
    folder = tmp_path / "letters"
    folder.mkdir()
    for name, size in (("train", 48), ("validation", 24), ("test", 8)):
        rows = []
        for index in range(size):
            label, other = ("a", "b") if index % 2 else ("b", "a")
            rows.append({"text": " ".join(draw.choices([label, other], [4, 1], k=6)), "label": label})
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "letters.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "name": "letters",
                "backbone": str(tiny_backbone("roberta")),
                "task": {"folder": "letters", "text": "text", "label": "label", "max_tokens": 8},
                "budget": "0.5%",
                "training": {"steps": 6, "batch_size": 8, "precision": "fp32"},
                "fleet": {"backend": "inline", "pack": 2, "artefacts": str(tmp_path / "artefacts")},
            }
        )
    )
    return path


@pytest.mark.parametrize("method", ["intrinsic_said", "intrinsic_did"])
def test_the_intrinsic_dimension_of_a_task_is_measured(
    method: str, study_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["d90", str(study_file), "--method", method, "--dimensions", "10,60,400", "--quiet", "--json"]
    assert main(arguments) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    points = {point["dimension"]: point for point in found["outcome"]["points"]}
    full = found["outcome"]["full"]["score"]
    # a factor for each of the 37 tensors of the backbone does not fit in 10 dimensions
    assert list(points) == ([60, 400] if method == "intrinsic_said" else [10, 60, 400])
    assert found["finished"]
    assert 0 < full <= 1
    assert all(point["failed"] == 0 and 0 <= point["score"] <= 1 for point in points.values())
    enough = [dimension for dimension, point in points.items() if point["score"] >= 0.9 * full - 1e-9]
    assert found["d90"] == min(enough, default=None)
