"""Rows of plain values are written as all values are."""

import json
import math

import pytest

from dashboards.web.encoding import row_to_json, to_json
from studies.store.records import TrialState


@pytest.mark.parametrize(
    "row",
    [
        (),
        (1, -0.25, 1e-300, True, False, None, "text", TrialState.COMPLETE),
        (math.nan, math.inf, -math.inf, 0.0),
        ('"quoted"', "back\\slash", "\x00\x1b[31m", "</script>", "é 漢 \u202e", "\ud800"),
    ],
)
def test_a_row_is_written_as_any_other_value(row: tuple[object, ...]) -> None:
    assert row_to_json(row) == to_json(row)
    json.loads(row_to_json(row))
