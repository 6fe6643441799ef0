"""Commands that read: what they print, as tables and as JSON."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from deltaspace.commands.main import COMMANDS, cli, main
from studies.analysis.sql import run_query

BACKBONES = Path(__file__).parents[2] / "data" / "backbones"
ROBERTA = str(BACKBONES / "roberta_base")

PAGES = ("dashboard", "report", "rename", "delete", "archive", "backup", "merge")
"""What these make is no answer; all others can answer in JSON."""


@pytest.fixture
def run(sample_storage, monkeypatch, printed) -> Callable[..., str]:
    """Run a command line that must succeed on the sample storage; return its output."""
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    return printed


def test_studies_are_listed(run):
    assert "sample" in run("studies")
    (study,) = json.loads(run("studies", "--json"))
    assert (study["name"], study["metric"], study["counts"]["complete"]) == ("sample", "accuracy", 2)
    assert study["best"]["number"] == 3


def test_show_prints_the_leaderboard(run):
    _, _, table = run("show", "sample").partition("\nplace ")
    assert table.index("discovered") < table.index("mam_adapter") < table.index("lora_qv")
    board = json.loads(run("show", "sample", "--json", "--top", "2"))
    assert [row["number"] for row in board["rows"]] == [3, 0, 1, 2]
    assert board["rows"][0]["score"] == 0.85


def test_best_is_the_page_of_the_best_trial(run):
    assert "trial 3 of sample" in run("best", "sample")
    assert json.loads(run("best", "sample", "--json"))["trial"]["number"] == 3


def test_a_trial_has_readings_and_attempts_and_no_storage(run):
    assert "loss is NaN at step 3" in run("trial", "sample", "2")
    page = json.loads(run("trial", "sample", "0", "--json"))
    assert [*page] == ["study", "trial", "attempts", "readings", "artefacts", "events", "replicates", "estimate"]
    assert [reading["score"] for reading in page["readings"]] == [0.6, 0.8]
    assert page["trial"]["configuration"]["edits"]
    assert page["attempts"][0]["started_at"].endswith("+00:00")


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet", "txt"])
def test_a_query_is_written_to_a_file_by_its_name(run, tmp_path, capsys, suffix):
    file = tmp_path / f"answer.{suffix}"
    sql = "select number, reason, score from trials where number < 2 order by number"
    assert main(["query", sql, "--output", str(file)]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"2 rows are in {file}.\n")
    if suffix == "parquet":
        frame = pandas.read_parquet(file)
        assert [str(kind) for kind in frame.dtypes] == ["Int64", "string", "float64"]
        assert frame["score"].isna().tolist() == [False, True]
    elif suffix == "txt":
        assert file.read_text().splitlines()[0].split() == ["number", "reason", "score"]
    else:
        assert file.read_text() == run("query", sql, "--format", suffix)
    assert main(["query", sql, "--output", str(file)]) == 2
    assert "must be a new file" in capsys.readouterr().err


def test_a_file_that_appears_while_a_query_runs_is_left_as_it_is(run, tmp_path, monkeypatch, capsys):
    file, real_query = tmp_path / "answer.csv", run_query

    def slow(*words: object) -> object:
        file.write_text("somebody else's")
        return real_query(*words)  # type: ignore[arg-type]

    monkeypatch.setattr("studies.analysis.sql.run_query", slow)
    assert main(["query", "select number from trials", "--output", str(file)]) == 2
    assert "must be a new file" in capsys.readouterr().err
    assert file.read_text() == "somebody else's"
    assert [path.name for path in tmp_path.glob("*answer*")] == ["answer.csv"]


HOSTILE = "\x1b[2J\x07\x9b31m\u202egnp\u2066\r"


def test_query_output_has_no_control_codes(run, capsys):
    sql = (
        "select 'a' || char(27) || '[2J' || char(7, 155) || '31m' || char(8238, 8294, 13) || 'z' as " + '"\x1b]0;x\x07"'
    )
    raw = {"\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\r"}
    for form in ("table", "json"):
        assert not raw & set(run("query", sql, "--format", form))
    [row] = json.loads(run("query", sql, "--json"))
    assert row == {"\x1b]0;x\x07": "a\x1b[2J\x07\x9b31m\u202e\u2066\rz"}
    assert r"a\x1b[2J\x07\x9b31m\u202e\u2066\rz" in run("query", sql)
    assert main(["show", HOSTILE]) == 2
    assert not raw & set(capsys.readouterr().err)


def test_a_query_prints_a_table_json_or_csv(run):
    sql = "select number, reason, score from trials where number < 2 order by number"
    assert "rung 0 (25 steps)" in run("query", sql)
    as_json = json.loads(run("query", sql, "--json"))
    assert as_json == json.loads(run("query", sql, "--format", "json"))
    assert as_json[0] == {"number": 0, "reason": None, "score": 0.8}
    rows = list(csv.reader(io.StringIO(run("query", sql, "--format", "csv"))))
    assert rows == [
        ["number", "reason", "score"],
        ["0", "", "0.8"],
        ["1", "rung 0 (25 steps): 0.55 below the cut 0.6", ""],
    ]


def test_a_trial_is_described_on_the_backbone_of_its_study(run):
    text = run("describe", "sample", "1")
    assert "trial 1 of sample" in text
    assert "599,040" in text
    described = json.loads(run("describe", "sample", "1", "--json"))
    assert described["counts"]["stored"] == 599_040


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_defaults_and_examples(run, name):
    text = run(name, "--help")
    assert "examples:" in text
    assert f"deltaspace {name}" in text
    assert ("--json" in text) == (name not in PAGES)


@pytest.mark.parametrize("name", COMMANDS)
def test_list_of_commands_equals_their_help(run, name):
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == name
    listed = " ".join(run("--help").split())
    assert f" {name} {(command.help or '').splitlines()[0]} " in listed


def test_in_a_pipe_a_row_is_a_line_however_long_it_is(run):
    shown = run("show", "sample").splitlines()
    rows = json.loads(run("show", "sample", "--json"))["rows"]
    assert all(any(row["sentence"] in line for line in shown) for row in rows)
    assert all(line == line.rstrip() for line in shown)
