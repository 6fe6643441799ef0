"""The shipped study of the intrinsic dimension, and the query of the guide that reads it off."""

import json
import re
from pathlib import Path

import pytest
import yaml
from support.letters import letters_study, write_letters

from deltaspace.commands.main import main
from studies.study_file import specification_of

ROOT = Path(__file__).parents[2]


def _query(study: str) -> str:
    """Return the query of the guide for another study."""
    guide = (ROOT / "docs" / "how-to" / "trade-score-for-size.md").read_text()
    (query,) = re.findall(r"```sql\n([^`]*intrinsic-dimension[^`]*)```", guide)
    return str(query).replace("intrinsic-dimension", study)


def test_the_shipped_study_trains_every_dimension_to_the_end():
    study = specification_of("intrinsic_dimension")
    assert study.trials == len(study.space_options.published_points)
    assert study.rung_steps == (study.training.steps,)


@pytest.mark.slow
def test_the_share_of_full_fine_tuning_is_read_off_by_a_query(tmp_path, tiny_backbone, monkeypatch, capsys):
    monkeypatch.setenv("DELTASPACE_STORAGE", f"sqlite:///{tmp_path / 'ledger.db'}")
    write_letters(tmp_path / "letters")
    points = ["full_finetuning", "intrinsic_did:dint=10", "intrinsic_did:dint=60", "intrinsic_did:dint=400"]
    shipped = yaml.safe_load((ROOT / "studies" / "examples" / "intrinsic_dimension.yaml").read_text())
    keys = shipped | letters_study(
        tmp_path,
        tiny_backbone("roberta"),
        trials=len(points),
        budget=shipped["budget"],
        search={"sampler": "random", "published": points},
        fleet={"backend": "inline", "pack": 2, "artefacts": str(tmp_path / "artefacts")},
    )
    (tmp_path / "letters.yaml").write_text(yaml.safe_dump(keys))
    assert main(["launch", str(tmp_path / "letters.yaml"), "--quiet"]) == 0, capsys.readouterr().err
    capsys.readouterr()

    assert main(["query", _query("letters"), "--json"]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    assert [row["method"] for row in found] == [*points[1:], points[0]]
    full = found[-1]["score"]
    assert [row["of_full"] for row in found] == pytest.approx([row["score"] / full for row in found])
