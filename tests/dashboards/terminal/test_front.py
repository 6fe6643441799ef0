"""The front of a study on its leaderboard, at 80 columns and as JSON."""

import json
import re

import pytest
from support.planted_ledger import Planted
from support.screens import screen

from dashboards.terminal.tables import leaderboard_table
from deltaspace.commands.main import main
from search_space.errors import BudgetError
from studies.analysis.fronts import best_within, front_of, parameters_of
from studies.analysis.leaderboard import leaderboard
from studies.analysis.ranks import ranking_of
from studies.errors import StudiesError
from studies.study import Study


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory):
    url = f"sqlite:///{tmp_path_factory.mktemp('front') / 'one.db'}"
    made = Planted(url, 40, noise=0.02, search={"objectives": ["score", "parameters"], "size": [0.125, 1.0]})
    yield made
    made.ledger.close()


@pytest.fixture(scope="module")
def url(planted: Planted) -> str:
    return planted.ledger.url


@pytest.mark.parametrize("width", [80, 120])
def test_a_leaderboard_of_two_objectives_shows_its_front_within_the_width(planted, width):
    board = leaderboard(planted.ledger, "planted", top=5)
    assert board.front is not None
    shown = screen(leaderboard_table(board), width)
    front = shown[shown.index("The best within every size") :]
    for point in board.front.points:
        assert re.search(rf"^ *{point.size:,} +.* {point.number} ", front, re.MULTILINE)
    assert "Hypervolume" in front
    assert "of the parameters of trial" in " ".join(shown.split())


def test_verdict_has_the_score_at_half_the_size(planted):
    board = leaderboard(planted.ledger, "planted")
    assert board.front is not None
    best = board.front.points[-1]
    small = board.front.within(best.size / 2)
    assert small is not None
    assert board.verdict.endswith(
        f"With {small.size / best.size:.0%} of the parameters of trial {best.number}, trial {small.number} has "
        f"{best.estimate - small.estimate:.4f} less accuracy."
    )


def test_the_best_within_a_size_is_the_best_of_those_that_are_no_larger(planted):
    ranking = ranking_of(planted.ledger, planted.study)
    for share in ("0.05%", "0.1%", "0.3%"):
        most = parameters_of(share, planted.study)
        assert most == int(float(share[:-1]) / 100 * planted.study.backbone_parameters)
        fitting = [trial for trial in ranking.trials if trial.stored_parameters <= most]
        best = max(fitting, key=lambda trial: ranking.estimates.of[trial.number].mean)
        assert best_within(planted.ledger, "planted", share) == best.number
        assert best_within(planted.ledger, "planted", most) == best.number


def test_too_small_or_invalid_size_is_refused(planted):
    smallest = min(trial.stored_parameters for trial in planted.ledger.trials(planted.study.id))
    with pytest.raises(StudiesError, match=f"at most {smallest - 1:,} parameters; the smallest has {smallest:,}"):
        best_within(planted.ledger, "planted", smallest - 1)
    with pytest.raises(BudgetError, match="must be a percentage"):
        best_within(planted.ledger, "planted", "small")


def test_commands_print_the_front_and_accept_a_size(planted, url, capsys):
    front = front_of(planted.ledger, planted.ledger.study("planted"))
    assert main(["show", "planted", "--json", "--storage", url]) == 0
    points = json.loads(capsys.readouterr().out)["front"]["points"]
    assert [point["number"] for point in points] == [point.number for point in front.points]
    size = str(front.points[0].size)
    assert main(["best", "planted", "--size", size, "--json", "--storage", url]) == 0
    assert json.loads(capsys.readouterr().out)["trial"]["number"] == front.points[0].number
    assert Study.open("planted", url).best_within(size).number == front.points[0].number
    assert len(Study.open("planted", url).front) == len(front.points)
    assert main(["export", "planted", "3", "out", "--size", size, "--storage", url]) == 2
    assert "--size chooses the best trial; got trial 3" in capsys.readouterr().err
