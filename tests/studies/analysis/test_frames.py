"""Frames: columns typed by their values, words as categories, and what JSON can hold of them."""

import json
from datetime import UTC, datetime

import pandas
import pytest

from studies.analysis.frames import frame, frame_of, frame_rows
from studies.records import TrialState

STAMP = "2026-01-02T03:04:05.000006+00:00"


def test_columns_are_typed_by_their_values():
    made = frame_of(
        ("n", "x", "is", "text", "at", "told", "big"),
        [(1, 0.5, True, "a", datetime(2026, 1, 2, tzinfo=UTC), STAMP, 2**70), (None,) * 7],
    )
    kinds = [str(made[name].dtype).rpartition(", ")[2] for name in made.columns]
    assert kinds == ["Int64", "float64", "boolean", "string", "UTC]", "UTC]", "object"]
    assert made["big"][0] == 2**70


def test_states_are_ordered_categories_with_unknown_last():
    made = frame([{"state": TrialState.PRUNED, "attention_form": "mine"}, {"state": "odd", "attention_form": None}])
    assert [*made["state"].cat.categories] == [*(state.value for state in TrialState), "odd"]
    assert [*made["attention_form"].cat.categories] == ["mine"]


@pytest.mark.parametrize("value", [1, 0.25, True, "text", None])
def test_cells_are_json_values(value):
    (entry,) = frame_rows(frame_of(("a", "b"), [(value, float("nan"))]))
    assert json.loads(json.dumps(entry, allow_nan=False)) == {"a": value, "b": None}


def test_times_are_iso_8601():
    (entry,) = frame_rows(pandas.DataFrame({"at": [pandas.Timestamp("2026-01-02", tz="UTC")]}))
    assert entry == {"at": "2026-01-02T00:00:00+00:00"}
