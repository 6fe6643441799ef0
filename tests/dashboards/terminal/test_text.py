"""Numbers and times as people read them."""

import pytest

from dashboards.terminal.text import duration_text, estimate_text, score_text
from studies.records import ExampleCounts, TrialState


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-3, "0s"), (12.4, "12s"), (59.6, "1m"), (65, "1m05s"), (300, "5m"), (3600, "1h00m"), (5400, "1h30m")],
)
def test_a_length_of_time(seconds, text):
    assert duration_text(seconds) == text


def test_a_score_of_a_trial_that_did_not_complete_names_its_step():
    assert score_text(0.5, TrialState.COMPLETE, 200) == "0.5000"
    assert score_text(0.5, TrialState.PRUNED, 25) == "0.5000 @ 25"
    assert score_text(None, TrialState.FAILED, 0) == "-"
    assert score_text(-3.25, TrialState.PRUNED, 25, early_by_loss=True) == "loss 3.2500 @ 25"
    assert score_text(-3.25, TrialState.COMPLETE, 200, early_by_loss=True) == "-3.2500"


def test_an_estimate_without_an_error_has_no_interval():
    assert estimate_text(0.0598, 0.0702) == "0.0598 ± 0.0104"
    assert estimate_text(0.0598, 0.0598) == estimate_text(0.0598, 0.05984) == "0.0598"
    assert estimate_text(-1e-9, 1e-9) == "0.0000"


def test_rung_score_has_error_of_the_examples_measured_there():
    examples = ExampleCounts(whole=800, rungs=200)
    last = score_text(0.5, TrialState.COMPLETE, 200, examples=examples)
    early = score_text(0.5, TrialState.PRUNED, 50, examples=examples)
    assert last.split(" ± ") == ["0.5000", "0.0346"]  # 1.96 sqrt(0.5 * 0.5 / 800)
    assert early == "0.5000 ± 0.0693 @ 50"
