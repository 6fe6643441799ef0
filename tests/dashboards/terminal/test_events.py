"""Events of a launch, as lines and as JSON."""

import io
import json
from dataclasses import replace

from support.shown_progress import BEST, shown_progress

from dashboards.terminal.events import EventLog, Events, event_line, progress_line
from studies.runtime.progress import Progress


def at(ended: int, listed: int | None = None) -> Progress:
    """Return the progress after some trials, of which the last few are listed."""
    progress = shown_progress()
    return replace(progress, just_ended=progress.just_ended[: listed or None], ended_here=ended)


def lines(*states: Progress) -> list[str]:
    events = Events()
    return [event_line(event) for progress in states for event in events.of(progress)]


def test_every_ended_trial_has_one_short_line():
    found = lines(at(15), at(19))
    assert found[-4:] == [
        "16/36 trial 15 collapsed at 50: 0.1707 ± 0.0271; sequential softmax memory l=9, FFN hidden [about 3m05s left]",
        "17/36 trial 16 failed: scaling, query (the loss is nan at step 3) [about 3m05s left]",
        "18/36 trial 17 complete: 0.4870 ± 0.0359, highest so far; LoRA r=8–9, ×2, query+key+value+output (like "
        "lora_qv) [about 3m05s left]",
        "19/36 trial 18 pruned at 50: 0.3993 ± 0.0352; bias, query+value + LoRA r=12–13, FFN up [about 3m05s left]",
    ]


def test_unlisted_ended_trials_are_counted():
    assert lines(at(0), at(19))[1] == "15/36 15 more trials ended"


def test_a_study_at_one_moment_has_a_line():
    assert progress_line(shown_progress()) == (
        "docstrings: 19 of 36 trials, 4 running; highest 0.4870 ± 0.0359; 4m12s gone, about 3m05s left"
    )
    assert progress_line(shown_progress(is_early=True)) == "docstrings: 0 of 36 trials, 4 running; 4s gone"


def test_a_log_has_a_line_of_json_per_event():
    file = io.StringIO()
    log = EventLog(file)
    for progress in (at(17), at(18, listed=3), at(18, listed=3)):
        log(progress)
    log.end("docstrings", "finished: all 36 trials have ended", finished=True)
    events = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [one["event"] for one in events] == ["launch", "trials", *["trial"] * 4, "trial", "end"]
    assert (events[0]["head_only"], events[0]["constant"], events[0]["target_trials"]) == (0.412, 0.1667, 36)
    assert events[1]["unseen"] == 13
    best = events[6]
    assert (best["trial"], best["state"], best["score"], best["scored_by"]) == (17, "complete", 0.487, "accuracy")
    assert (best["is_best"], best["method"], best["step"], best["reason"]) == (True, None, 200, None)
    assert best["description"] == BEST.description
    assert (events[-1]["finished"], events[-1]["reason"]) == (True, "finished: all 36 trials have ended")
    assert all(one["at"].endswith("+00:00") and one["study"] == "docstrings" for one in events)


def test_control_codes_are_escaped_in_the_log():
    file = io.StringIO()
    one = replace(BEST, description="a\x1b[31mb")
    EventLog(file)(replace(at(1), just_ended=(one,)))
    assert "\x1b" not in file.getvalue()
    assert json.loads(file.getvalue().splitlines()[-1])["description"] == "a\x1b[31mb"
