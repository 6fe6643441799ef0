"""The score of a trial that was trained several times: its mean on every surface; and the interval beside a score."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.dashboard_client import dashboard_of
from support.planted_ledger import EXAMPLES, Planted
from support.screens import screen
from support.shown_progress import BEST, shown_progress

from dashboards.figures.boards import leaderboard_figure
from dashboards.terminal.events import Events, event_line, progress_line
from dashboards.terminal.live import LiveView
from dashboards.terminal.tables import leaderboard_table
from deltaspace.commands.main import main
from studies.analysis.leaderboard import leaderboard
from studies.study import Study

TRIALS = 7
SCORES = 0.80, 0.70, 0.75
"""Of the best trial: with its own seed, then with two others."""
MEAN = 0.75


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Seven trials, the fifth the best by far, and two replicates of it."""
    folder = tmp_path_factory.mktemp("one")
    (folder / "truth").mkdir()
    truth = Planted(f"sqlite:///{folder / 'truth' / 'ledger.db'}", TRIALS).truth(4)
    noise_of_trials = {**dict.fromkeys(range(TRIALS), -0.2), 4: SCORES[0] - truth}
    made = Planted(f"sqlite:///{folder / 'ledger.db'}", TRIALS, noise_of_trials=noise_of_trials)
    for score in SCORES[1:]:
        made.replicate(4, score)
    return made


@pytest.fixture
def printed(planted: Planted, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*arguments: str) -> str:
        assert main([*arguments, "--storage", planted.ledger.url]) == 0
        return capsys.readouterr().out

    return call


def first_column(planted: Planted, sql: str) -> list[Any]:
    return Study.open("planted", planted.ledger.url).query(sql).iloc[:, 0].tolist()


def test_every_surface_shows_the_mean_of_the_trainings(planted, printed):
    study = Study.open("planted", planted.ledger.url)
    found = {
        "python": study.best.score,
        "python board": study.leaderboard()["score"].tolist()[0],
        "show": json.loads(printed("show", "planted", "--json"))["rows"][0]["score"],
        "show, best": json.loads(printed("show", "planted", "--json"))["summary"]["best_score"],
        "best": json.loads(printed("best", "planted", "--json"))["trial"]["score"],
        "trial": json.loads(printed("trial", "planted", "4", "--json"))["trial"]["score"],
        "studies": json.loads(printed("studies", "--json"))[0]["best_score"],
        "leaderboard": first_column(planted, "SELECT score FROM leaderboard ORDER BY place")[0],
        "budget_use": first_column(planted, "SELECT score FROM budget_use WHERE trial = 4")[0],
        "fronts": max(first_column(planted, "SELECT score FROM fronts")),
        "tally": planted.ledger.tally(planted.study.id).best,
        "figure": max(
            value for trace in leaderboard_figure(leaderboard(planted.ledger, "planted")).data for value in trace["x"]
        ),
    }
    with dashboard_of(planted.ledger.url) as asker:
        found["dashboard, studies"] = asker.ask("/api/studies.json").json["studies"][0]["best"]
        key = asker.ask("/api/studies.json").json["studies"][0]["id"]
        answer: dict[str, Any] = {}
        while "ranking" not in answer:
            answer = asker.ask(f"/api/studies/{key}/trials.json").json
        found["dashboard, trials"] = answer["ranking"]["repeated"]["4"]["score"]
    assert found == pytest.approx(dict.fromkeys(found, MEAN))
    for command in (["show", "planted"], ["best", "planted"], ["trial", "planted", "4"], ["studies"]):
        text = printed(*command)
        assert f"{MEAN:.4f}" in text, command
        is_whole = command[0] in ("best", "trial")  # which list the trainings and their readings
        assert is_whole or f"{SCORES[0]:.4f}" not in text, command


def test_a_replicate_keeps_its_own_score(planted, printed):
    assert json.loads(printed("trial", "planted", "7", "--json"))["trial"]["score"] == SCORES[1]
    assert first_column(planted, "SELECT score FROM budget_use WHERE trial > 6 ORDER BY trial") == [*SCORES[1:]]


def interval(score: float) -> str:
    """Format a share of right answers and half of its 95% binomial interval."""
    return f"{score:.4f} ± {1.959963984540054 * math.sqrt(score * (1 - score) / EXAMPLES):.4f}"


def test_interval_of_a_score_is_binomial_on_every_surface(planted):
    board = leaderboard(planted.ledger, "planted")
    text = screen(leaderboard_table(board))
    assert f"best accuracy: {interval(MEAN)}, trial 4" in text
    assert f"{interval(MEAN)} ×3" in text
    for row in board.rows[1:]:
        assert interval(row.score or 0.0) in text
    assert f"± of a score: its 95% interval, by the sampling of the {EXAMPLES} examples that it is of." in text
    best = replace(BEST, number=4, score=MEAN, stored_parameters=10)
    progress = replace(
        shown_progress(), top=(best,), just_ended=(best,), running=(), ended_here=1, examples=board.examples
    )
    lines = [screen(LiveView(progress)), progress_line(progress)]
    lines += [event_line(event) for event in Events().of(progress) if event.trial is not None]
    assert len(lines) == 3
    for line in lines:
        assert interval(MEAN) in line
