"""The view of a running launch."""

import io
import re
from dataclasses import replace
from html import unescape

import pytest
from rich.console import Console
from support.screens import WIDTHS, kept, picture, screen
from support.shown_progress import RUNNING, ended, running, shown_progress

from dashboards.terminal.live import LiveView, left_text, times_text
from studies.records import TrialState
from studies.runtime.progress import Progress, TimeLeft

HEIGHTS = {80: 24, 120: 40, 200: 50}


def shown(progress: Progress, width: int = 80, height: int = 24) -> str:
    return screen(LiveView(progress, height=height), width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("name", "is_early"), [("live", False), ("live-beginning", True)])
def test_live_view_shows_progress_best_ended_and_running_trials(name, is_early, width):
    text = shown(shown_progress(is_early=is_early), width, HEIGHTS[width])
    assert text == kept(f"{name}-{width}", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_documentation_has_pictures_of_it(width):
    view = LiveView(shown_progress(), height=HEIGHTS[width])
    drawn = unescape(re.sub(r"<[^>]+>", " ", picture("live", view, width).read_text(encoding="utf-8")))
    words = set(drawn.replace("\xa0", " ").split())
    assert {word for word in screen(view, width).split() if word.isalnum()} <= words
    assert "http" not in drawn


@pytest.mark.parametrize("height", [14, 18, 24, 30])
def test_it_is_never_higher_than_the_terminal(height):
    many = tuple(running(20 + number, "bias, query", 25, 0.4) for number in range(40))
    text = shown(replace(shown_progress(), running=many), height=height)
    assert len(text.splitlines()) < height
    assert f"and {40 - text.count('25/200')} more" in text
    assert all(title in text for title in ("highest", "just ended", "running"))


def test_those_that_have_come_furthest_are_shown_where_not_all_can_be():
    slow = tuple(running(number, "bias, query", 0, None) for number in range(20, 60))
    text = shown(replace(shown_progress(), running=(*slow, running(77, "bias, key", 150, 0.4))), height=16)
    assert " 77 " in text


def test_loss_in_place_of_the_metric_is_marked():
    one = replace(RUNNING[1], score=-2.25, is_by_loss=True)
    assert "loss 2.2500" in shown(replace(shown_progress(), running=(one,)))


def test_confirmation_with_complete_trials_has_no_best_one_yet():
    progress = replace(shown_progress(), top=(), improvements=())
    assert "compared when all trials have ended" in shown(progress)
    assert "no trial is complete yet" in shown(replace(progress, counts=dict.fromkeys(TrialState, 0)))


def test_scores_without_noise_have_no_interval():
    assert "±" not in shown(replace(shown_progress(), examples=None))


def test_missing_facts_are_not_shown():
    assert "head alone" not in shown(replace(shown_progress(), head_only=None))
    early = shown(shown_progress(is_early=True))
    assert "no trial is complete yet  constant 0.1667" in early
    assert "left" not in early


def test_names_are_text():
    one = replace(RUNNING[0], description="adapter [of] \x1b[31m1")
    text = shown(replace(shown_progress(), running=(one,), study="[red]x[/]"))
    assert "adapter [of] \\x1b[31m1" in text
    assert "[red]x[/]" in text


def test_discoveries_alone_are_bold():
    top = (
        ended(9, "LoRA r=8, ×2, query", 0.49),
        ended(14, "LoRA r=6, ×2, query+value (lora_qv)", 0.48),
        ended(4, "LoRA r=4, ×1, key", 0.47, method="lora_qv"),
    )
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(LiveView(replace(shown_progress(), top=top, running=(), just_ended=()), height=40))
    lines = console.export_text(styles=True).splitlines()
    bold = [any("\x1b[1mLoRA" in line for line in lines if f" {one.number} " in line) for one in top]
    assert bold == [True, False, False]


def test_a_long_name_leaves_the_count_whole():
    assert "19 of 36 trials" in shown(replace(shown_progress(), study="s" * 200))


def test_lower_bound_of_the_time_left_is_marked():
    assert left_text(TimeLeft(seconds=185)) == "about 3m05s left"
    assert left_text(TimeLeft(seconds=185, is_more=True)) == "more than 3m05s left"
    assert times_text(shown_progress()) == "4m12s gone, about 3m05s left"
