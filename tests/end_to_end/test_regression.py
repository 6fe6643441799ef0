"""A regression from a study file to predictions: launched, confirmed, exported in every form, predicted, carded."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.export_commands import confirm, predictions, write_splits

from deltaspace.commands.main import main

WORDS = ["a", "man", "is", "playing", "the", "guitar", "dog", "runs"]
TEXT = ["premise", "hypothesis"]


def rows_of(size: int, seed: int) -> list[dict[str, Any]]:
    """Return pairs like those of SICK: the number is the share of common words, between 1 and 5."""
    draw, rows = random.Random(seed), []
    for number in range(size):
        one, other = (draw.sample(WORDS, 4) for _ in range(2))
        shared = len({*one} & {*other}) / 4
        rows.append(
            {"premise": f"{' '.join(one)} {number}", "hypothesis": " ".join(other), "relatedness": 1 + 4 * shared}
        )
    return rows


@pytest.fixture
def study(tmp_path: Path, tiny_backbone: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """Launch a study to its end and return its name."""
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    write_splits(tmp_path / "data", rows_of, 32, 12, 10)
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
    confirm(study, "pearson", capsys)
    rows = [{key: row[key] for key in TEXT} for row in rows_of(5, 9)]
    answers = {form: [*map(float, values)] for form, values in predictions(study, rows, tmp_path).items()}
    for form in answers:
        card = (tmp_path / form / "README.md").read_text()
        assert "It predicts a number, `relatedness`." in card
        assert "\n- pearsonr\n" in card  # as the hub calls it
        assert "answers = logits.squeeze(-1).tolist()" in card
        assert '"scores"' not in (tmp_path / f"{form}.jsonl").read_text()
        assert answers[form] == pytest.approx(answers["deltaspace"], abs=1e-4)
    assert len(set(answers["deltaspace"])) > 1
