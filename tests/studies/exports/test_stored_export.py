"""An export that was stored before the code of today loads and predicts what it predicted then."""

import json
from pathlib import Path

import pytest

from deltaspace.commands.main import main

STORED = Path(__file__).parents[2] / "data" / "stored_export"


def test_a_stored_export_predicts_what_it_predicted_when_it_was_written(tmp_path):
    expected = [json.loads(line) for line in (STORED / "predictions.jsonl").read_text().splitlines()]
    given, output = tmp_path / "texts.jsonl", tmp_path / "predicted.jsonl"
    given.write_text("".join(json.dumps({"text": row["text"]}) + "\n" for row in expected))
    assert main(["predict", str(STORED), "--input", str(given), "--output", str(output)]) == 0
    found = [json.loads(line) for line in output.read_text().splitlines()]
    for row, own in zip(found, expected, strict=True):
        assert row["prediction"] == own["prediction"]
        assert row["scores"] == pytest.approx(own["scores"], abs=1e-4)
