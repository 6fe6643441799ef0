"""A regression from a study file to predictions: launched, confirmed, exported in every form, predicted, carded."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from deltaspace.commands.main import main

WORDS = ["a", "man", "is", "playing", "the", "guitar", "dog", "runs"]
TEXT = ["premise", "hypothesis"]
LORA = "0"
"""The published method comes first."""


def rows_of(size: int, seed: int) -> list[dict[str, Any]]:
    """Pairs as those of SICK: the number is the share of words that both have, between 1 and 5."""
    draw, rows = random.Random(seed), []
    for number in range(size):
        one, other = (draw.sample(WORDS, 4) for _ in range(2))
        alike = len({*one} & {*other}) / 4
        rows.append(
            {"premise": f"{' '.join(one)} {number}", "hypothesis": " ".join(other), "relatedness": 1 + 4 * alike}
        )
    return rows


@pytest.fixture
def study(tmp_path: Path, tiny_backbone: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a study that was launched to its end."""
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    data = tmp_path / "data"
    data.mkdir()
    for seed, (name, size) in enumerate({"train": 32, "validation": 12, "test": 10}.items()):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(size, seed)))
    given = {
        "name": "alike",
        "backbone": str(tiny_backbone("roberta")),
        "task": {"kind": "regression", "folder": "data", "text": TEXT, "label": "relatedness", "max_tokens": 40},
        "budget": 600,
        "training": {"steps": 4, "batch_size": 8, "precision": "fp32"},
        "trials": 3,
        "search": {"sampler": "random", "published": ["lora_qv"]},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str(tmp_path / "artefacts")},
    }
    (tmp_path / "alike.yaml").write_text(yaml.safe_dump(given))
    assert main(["check", str(tmp_path / "alike.yaml")]) == 0
    assert main(["launch", str(tmp_path / "alike.yaml"), "--quiet"]) == 0
    return "alike"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
def test_a_regression_goes_all_the_way(study, tmp_path, capsys):
    capsys.readouterr()
    assert main(["show", study]) == 0
    assert "pearson" in capsys.readouterr().out
    assert main(["confirm", study, "--top", "1", "--seeds", "2", "--quiet", "--json"]) == 0, capsys.readouterr().err
    assert '"pearson"' in capsys.readouterr().out
    asked = tmp_path / "asked.jsonl"
    asked.write_text("".join(json.dumps({key: row[key] for key in TEXT}) + "\n" for row in rows_of(5, 9)))
    answers = {}
    for form in ("deltaspace", "merged", "peft"):
        folder, out = tmp_path / form, tmp_path / f"{form}.jsonl"
        how = ["--merge"] if form == "merged" else ["--format", form]
        assert main(["export", study, LORA, str(folder), *how]) == 0
        assert "It predicts a number, `relatedness`." in (folder / "README.md").read_text()
        assert "\n- pearsonr\n" in (folder / "README.md").read_text()  # as the hub calls it
        assert "answers = logits.squeeze(-1).tolist()" in (folder / "README.md").read_text()
        assert main(["predict", str(folder), "--input", str(asked), "--output", str(out)]) == 0
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert all("scores" not in row for row in rows)
        answers[form] = [float(row["prediction"]) for row in rows]
    assert len(set(answers["deltaspace"])) > 1
    for form in ("merged", "peft"):
        assert answers[form] == pytest.approx(answers["deltaspace"], abs=1e-4)
