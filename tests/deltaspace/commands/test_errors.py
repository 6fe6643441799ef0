"""Errors on the command line: one line on stderr and an exit code, but bugs keep their traceback."""

from pathlib import Path

import pytest

import deltaspace.commands.results
from deltaspace.commands.main import main

TOO_MANY = f"1{30 * '0'}"
ROBERTA = str(Path(__file__).parents[2] / "data" / "backbones" / "roberta_base")


@pytest.fixture(autouse=True)
def _storage(sample_storage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    monkeypatch.chdir(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the one line of a command line that must fail."""
    code = main(arguments)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("deltaspace: ")
    assert printed.err.count("\n") == 1, printed.err
    return code, printed.err.removeprefix("deltaspace: ").strip()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "nope"], 2, "it contains: sample"),
        (["show", "smaple"], 2, "Did you mean 'sample'?"),
        (["trial", "sample", "99"], 2, "99"),
        (["describe", "lroa_qv"], 2, "Did you mean 'lora_qv'?"),
        (["count", "lora_qv", "--backbone", ROBERTA, "--set", "l=3"], 2, "rank (r)"),
        (["count", "lora_qv", "--backbone", ROBERTA, "--set", "r"], 2, "r=64"),
        (["count", "lora_qv", "--backbone", "./nowhere"], 2, "nowhere"),
        (["query", "delete from trials"], 2, "only read"),
        (["query", "select nothing from trials"], 2, "nothing"),
        (["studies", "--storage", "sqlite:///absent.db"], 2, "absent.db"),
        (["merge", "other.db"], 2, "must be a URL"),
        (["show", "sample", "--top", TOO_MANY], 2, "1<=x<=1000000"),
        (["predict", "nowhere", "--input", "a", "--output", "b"], 2, "there is no nowhere"),
        (["init", "nofolder"], 2, "'nofolder' must be on the hub or in its cache"),
        (["init"], 2, "Missing argument"),
        (["rename", "sample", "Up/Down"], 2, "the name of a study must be of lower-case letters"),
        (["launch", "nowhere.yaml"], 2, "there is no nowhere.yaml"),
        (["launch", "docstrings", "--set", "trials"], 2, "training.steps=300"),
        (["shwo", "sample"], 2, "did you mean 'show'?"),
        (["show", "sample", "--top", "0"], 2, "0"),
        (["query", ""], 2, "must be an SQL statement; got an empty text"),
        (["query", "select 1; select 2"], 2, "must be one statement"),
        (["query", "select 1", "--json", "--format", "csv"], 2, "--json is --format json; got --format csv as well"),
        (["query", "select 1", "--output", "answer.xls"], 2, ".csv, .tsv, .md, .parquet, .txt; got answer.xls"),
        (["query", "select 1", "--limit", "-1"], 2, "--limit"),
        (["query", "select 1", "--timeout", "soon"], 2, "--timeout must be a time above 0"),
        (["query", "select 1 as a, 2 as a", "--json"], 2, "columns must have names of their own; a stands twice"),
        (["query", "select 1", "--output", "nowhere/answer.csv"], 2, "there is no folder nowhere"),
        (["report", "sample", "nowhere/report.html"], 2, "there is no folder nowhere"),
        (["describe", "sample", "1", "--set", "r=3"], 2, "published methods"),
    ],
)
def test_error_is_one_line_with_its_exit_code(capsys, arguments, code, message):
    got_code, line = refused(capsys, *arguments)
    assert message in line
    assert got_code == code


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trials",), "trials: must be at most 1000000; got '1000000"),
        (("--workers",), "fleet.workers: must be auto or a whole number from 1 to 1,000,000; got"),
        (("--pack",), "fleet.pack: must be auto or a whole number from 1 to 1,000,000; got"),
        (("--set", "search.replicates"), "search.replicates: must be auto or a whole number from 0 to 1,000,000; got"),
        (("--set", "training.steps"), "training.steps: must be at most 1000000000; got"),
        (("--set", "training.batch_size"), "training.batch_size: must be at most 1000000; got"),
    ],
)
def test_numbers_without_bound_are_refused(capsys, options, message):
    huge = "1" + 30 * "0"
    words = [options[0], f"{options[1]}={huge}" if len(options) > 1 else huge]
    assert main(["launch", "docstrings", *words]) == 2
    _, line = capsys.readouterr().err.splitlines()
    assert line.startswith(message)


def test_all_problems_of_a_study_file_are_listed(capsys, tmp_path):
    (tmp_path / "study.yaml").write_text("name: x\nbudget: 0%\ntrails: 3\n")
    assert main(["launch", "study.yaml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "deltaspace: study.yaml is not a valid study file; 4 problems:"
    assert sorted(line.split(":")[0] for line in lines[1:]) == ["backbone", "budget", "task", "trails"]


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(deltaspace.commands.results.best, "callback", fail)
    with pytest.raises(ZeroDivisionError):
        main(["best", "sample"])


def test_ctrl_c_is_no_traceback(capsys, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(deltaspace.commands.results.best, "callback", interrupt)
    assert main(["best", "sample"]) == 130
    assert capsys.readouterr().err.strip() == "deltaspace: interrupted."


def test_no_command_at_all_shows_the_help(capsys):
    assert main([]) == 2
    assert "Commands:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["count", "lora_qv"], ["methods"], ["describe", "lora_qv"]])
def test_error_of_an_unregistered_backbone_names_the_check(capsys, tmp_path, arguments):
    (tmp_path / "config.json").write_text('{"model_type": "opt"}')
    code, line = refused(capsys, *arguments, "--backbone", str(tmp_path))
    assert code == 2
    assert "got 'opt'" in line
    assert line.endswith(f"deltaspace check --backbone {tmp_path}")


def test_system_error_of_a_file_is_one_line(capsys):
    name = 300 * "9"
    assert refused(capsys, "backup", name) == (1, f"{name} cannot be used: File name too long.")
