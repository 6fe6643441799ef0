"""``deltaspace discover``: sections that fit a terminal, JSON, and refusals. The runner is trivial."""

import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console
from support.factored_search import drawn, whole_space
from support.trivial_launch import specification
from support.trivial_runner import TrivialFactory

from dashboards.terminal.discover import discovery_renderable
from deltaspace.commands.main import main
from studies.launching.launch import launch
from studies.queries.discover import Knowledge, across, conclusion, discovered, rule_tree

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("discover")
    url = f"sqlite:///{folder / 'ledger.db'}"
    launch(specification(folder, "inline", 14, "random"), storage_url=url, factory=TrivialFactory())
    return url


@pytest.fixture
def run(storage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("DELTASPACE_STORAGE", storage)

    def invoke(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return invoke


def test_some_views_are_json_with_their_tables(run: Run) -> None:
    code, out, err = run("discover", "trivial", "--view", "kinds", "--view", "V8", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert [view["view"] for view in told["views"]] == ["V3", "V8"]
    assert {"value", "low", "high", "n", "is_resolved", "sentence"} <= set(told["views"][1]["rows"][0])
    assert told["tree"]["leaves"]
    assert told["conclusion"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["trivial", "--view", "V9"], 2, "a view must be one of matters"),
        (["trivial", "other"], 2, "Pool them with --across"),
        (["trivial", "--across"], 2, "at least two studies must be pooled"),
        (["other"], 2, "no study 'other'"),
    ],
)
def test_misuse_is_said_in_a_line(run: Run, arguments: list[str], code: int, words: str) -> None:
    found, out, err = run("discover", *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


def test_every_section_fits_eighty_columns() -> None:
    """No cell is cut short; what one study says is said in full, and what several say."""
    space = whole_space()
    known = Knowledge(space, drawn(space, 40), metric="accuracy")
    other = Knowledge(space, drawn(space, 30, seed=1), metric="accuracy")
    answers = [*discovered(known), across({"one": known, "two": other})]
    shown = discovery_renderable(
        answers, title="[bold]docstrings[/]", conclusion=conclusion(known), tree=rule_tree(known).lines()
    )
    file = io.StringIO()
    Console(file=file, width=80, highlight=False, color_system=None).print(shown)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    cut = [line for line in text.splitlines() if "…" in line and not line.startswith("… and ")]
    assert cut == []
    for answer in answers:
        assert answer.question.split(",")[0] in text
    assert text.rstrip().endswith(conclusion(known)[-1][-20:])
