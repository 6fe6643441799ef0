"""The view of a running launch."""

import io

import pytest
from rich.console import Console

import dashboards.terminal.live
from dashboards.terminal.live import live_renderable, progress_line, progress_view
from studies.keeping.progress import BestTrial, Progress, RunningTrial
from studies.store.records import TrialState


def progress(complete: int = 3, running: int = 2, *, with_best: bool = True) -> Progress:
    best = BestTrial(number=7, score=0.8125, description="LoRA of 8 at q, v", stored_parameters=16_384)
    return Progress(
        study="sample",
        counts={
            TrialState.QUEUED: 0,
            TrialState.RUNNING: running,
            TrialState.COMPLETE: complete,
            TrialState.PRUNED: 4,
            TrialState.FAILED: 1,
        },
        target_trials=20,
        best=best if with_best else None,
        budget_parameters=20_000,
        seconds_elapsed=61,
        seconds_left=125,
        running=tuple(
            RunningTrial(
                number=number,
                description=f"adapter [of] {number}",
                step=25 * number,
                steps=200,
                last_score=0.5 if number else None,
                worker="worker-0",
            )
            for number in range(running)
        ),
    )


def rendered(value: Progress) -> str:
    console = Console(file=io.StringIO(), width=140, highlight=False)
    console.print(live_renderable(value))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_says_all_that_a_user_waits_for() -> None:
    assert progress_line(progress()) == (
        "sample: 8 of 20 trials (3 complete, 4 pruned, 1 failed, 2 running); "
        "best 0.8125 (trial 7: LoRA of 8 at q, v, 16,384 of 20,000 parameters, 81.9%); 1m01s gone, about 2m05s left"
    )


def test_before_the_first_complete_trial_there_is_no_best() -> None:
    assert "best" not in progress_line(progress(with_best=False))
    assert "no trial is complete yet" in rendered(progress(with_best=False))


def test_the_live_view_lists_the_running_trials() -> None:
    text = rendered(progress())
    assert "adapter [of] 1" in text
    assert "25/200" in text
    assert "16,384 of 20,000 parameters" in text


def test_many_running_trials_are_cut_and_counted() -> None:
    text = rendered(progress(running=40))
    assert "and 24 more" in text
    assert "adapter [of] 39" not in text


def test_lines_are_written_only_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 101.0, 109.9, 110.0])
    monkeypatch.setattr(dashboards.terminal.live.time, "monotonic", lambda: next(clock))
    file = io.StringIO()
    with progress_view(file) as observe:
        for complete in (1, 2, 3, 4):
            observe(progress(complete))
    begin, *lines = file.getvalue().splitlines()
    assert begin.startswith("preparing")
    assert [line.split(" of ")[0] for line in lines] == ["sample: 6", "sample: 9"]


def test_the_last_line_is_written_whenever_it_comes() -> None:
    file = io.StringIO()
    with progress_view(file) as observe:
        observe(progress(1))
        observe(progress(15))
    assert "20 of 20 trials" in file.getvalue().splitlines()[-1]


def test_a_terminal_gets_a_live_view() -> None:
    file = Terminal()
    with progress_view(file) as observe:
        observe(progress())
    assert "worker-0" in file.getvalue()


def test_quiet_shows_nothing() -> None:
    file = Terminal()
    with progress_view(file, quiet=True) as observe:
        observe(progress())
    assert file.getvalue() == ""
