"""Stored export: it loads, and its predictions are unchanged."""

import json
from pathlib import Path

import pytest

from deltaspace.commands.main import main

STORED = Path(__file__).parents[2] / "data" / "stored_export"


def test_stored_export_has_unchanged_predictions(tmp_path):
    expected = [json.loads(line) for line in (STORED / "predictions.jsonl").read_text().splitlines()]
    given, output = tmp_path / "texts.jsonl", tmp_path / "predicted.jsonl"
    given.write_text("".join(json.dumps({"text": row["text"]}) + "\n" for row in expected))
    assert main(["predict", str(STORED), "--input", str(given), "--output", str(output)]) == 0
    found = [json.loads(line) for line in output.read_text().splitlines()]
    for row, own in zip(found, expected, strict=True):
        assert row["prediction"] == own["prediction"]
        assert row["scores"] == pytest.approx(own["scores"], abs=1e-4)
