"""``deltaspace discover``: sections that fit a terminal, JSON, and refusals. The runner is trivial."""

import json
from collections.abc import Callable

import pytest
from support.factored_search import drawn, history_of, whole_space
from support.screens import screen
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from dashboards.terminal.discover import discovery_renderable
from studies.analysis.card import Card
from studies.analysis.discover import StudyPosterior, discovered, summary
from studies.launch.launch import launch


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("discover")
    url = f"sqlite:///{folder / 'ledger.db'}"
    launch(specification(folder, "inline", 14, "random"), storage_url=url, factory=TrivialFactory())
    return url


@pytest.fixture
def run(storage, monkeypatch, ran) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("DELTASPACE_STORAGE", storage)
    return ran


def test_some_views_are_json_with_their_tables(run):
    code, out, err = run("discover", "trivial", "--view", "sizes", "--view", "matters", "--json")
    assert (code, err) == (0, "")
    printed = json.loads(out)
    assert [view["name"] for view in printed["views"]] == ["sizes", "matters"]
    assert {"choice", "share", "low", "high", "matters"} == set(printed["views"][1]["rows"][0])
    assert printed["summary"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["trivial", "--view", "rules"], 2, "'rules' is not one of 'matters', 'winner', 'rates', 'sizes'"),
        (["other"], 2, "no study 'other'"),
    ],
)
def test_misuse_is_refused_in_one_line(run, arguments, code, words):
    found, out, err = run("discover", *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


Discovered = tuple[tuple[Card, ...], tuple[str, ...]]


@pytest.fixture(scope="module")
def found() -> Discovered:
    """Return the cards of a study and its summary."""
    space = whole_space()
    knowledge = StudyPosterior(space, history_of(drawn(space, 40)), metric="accuracy")
    cards = tuple(discovered(knowledge))
    return cards, tuple(summary(knowledge, cards))


def shown(found: Discovered, *, is_whole: bool) -> list[str]:
    cards, sentences = found
    renderable = discovery_renderable(cards, title="[bold]docstrings[/]", summary=sentences, is_whole=is_whole)
    return screen(renderable, 100).splitlines()


def test_a_few_sentences_come_first_then_at_most_forty_lines(found):
    lines = shown(found, is_whole=False)
    first = lines.index("")
    assert "".join(lines[1:first]).startswith(found[1][0][:40])
    assert len(lines) - first <= 40
    assert lines[-1].startswith("--all")
    assert not any("not resolved" in line for line in lines)


def test_all_rows_and_notes_are_shown_on_request(found):
    lines = shown(found, is_whole=True)
    text = " ".join(line.strip() for line in lines)
    for card in found[0]:
        assert card.question[:40] in text
        assert card.note.split(". ")[-1][:30] in text
    assert len(lines) > len(shown(found, is_whole=False))
    assert not any("…" in line for line in lines)
