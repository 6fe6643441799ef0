"""Confirmations in the terminal."""

from dataclasses import replace

import pytest
from support.screens import screen
from support.shown_confirmation import confirmation, contender

from dashboards.confirmations import confirmation_card
from dashboards.terminal.confirmations import confirmation_renderable
from studies.confirmation.results import ConfirmationResult
from studies.confirmation.verdicts import compare

WINNER = (0.8701, 0.8702, 0.8703, 0.8704, 0.8705)
BASELINE = (0.8501, 0.8502, 0.8503, 0.8504, 0.8506)


@pytest.fixture
def result() -> ConfirmationResult:
    return confirmation(
        contender("trial 17", WINNER, is_published=False, trial=17),
        contender("full_finetuning", BASELINE, is_published=True, trial=1),
        comparisons=compare(WINNER, {"full_finetuning": BASELINE}),
    )


def printed(result: ConfirmationResult, width: int = 200) -> str:
    return screen(confirmation_renderable(confirmation_card(result)), width)


@pytest.mark.parametrize("width", [80, 100, 120, 150])
def test_a_narrow_terminal_loses_no_number(result, width):
    text = printed(result, width)
    (comparison,) = compare(WINNER, {"full_finetuning": BASELINE})
    interval = f"{comparison.low:+.4f} to {comparison.high:+.4f}"
    for needed in ("0.8703", "0.8800", "+0.0200", interval, "0.0079", "full_finetuning", "beats"):
        assert needed in text
    assert "…" not in text


def test_missing_score_is_a_dash(result):
    waiting = contender("trial 17", (None,) * 5, is_published=False, trial=17)
    text = printed(replace(result, ended=5, contenders=(waiting, result.contenders[1]), comparisons=()))
    (line,) = [line for line in text.splitlines() if "what trial 17 is" in line]
    assert line.split()[-11:-4] == ["–", "–", "–", "0", "of", "5", "–"]
    assert "Not finished: 5 of 10 trials have ended." in text


@pytest.mark.parametrize("width", [80, 120, 170])
def test_ablation_steps_show_change_and_difference(result, width):
    winner, baseline = result.contenders
    path = replace(result, contenders=(replace(winner, change="FFN gate"), replace(baseline, change="")))
    lines = printed(path, width).splitlines()
    begins, ends = [line for line in lines if line.lstrip()[:2] in ("0 ", "1 ")]
    assert "full_" in begins
    assert "to" not in begins.split()
    for needed in ("FFN gate", "0.8703", "+0.0200", "0.0079"):
        assert needed in ends
