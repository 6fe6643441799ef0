"""What the README says can be done, done."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from deltaspace.commands.main import main
from search_space.rules import RULES
from studies.specification import read_specification

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def commands(program: str) -> list[list[str]]:
    """Arguments of every command line of the README that starts with a program."""
    lines = [line.split("  #")[0].strip() for block in blocks("console") for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith(program)]


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = [arguments[0] for arguments in commands("make")]
    assert {"search", "test", "setup", "lint", "bench"} == set(targets)
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("arguments", commands(".venv/bin/deltaspace"), ids=lambda arguments: arguments[0])
def test_the_commands_after_a_search_work(
    arguments: list[str], sample_storage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DELTASPACE_STORAGE", sample_storage)
    named = ["sample" if argument == "docstrings" else argument for argument in arguments]
    assert main(named) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.strip()


def test_the_study_file_is_valid_and_every_key_of_it_means_something(tmp_path: Path) -> None:
    (text,) = blocks("yaml")
    path = tmp_path / "reviews.yaml"
    path.write_text(text)
    (tmp_path / "reviews").mkdir()
    specification = read_specification(path)
    assert specification.name == "reviews"
    assert specification.fleet.time_budget == 1800
    assert set(yaml.safe_load(text)) <= set(type(specification).model_fields)


def test_the_validity_rules_are_all_there() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.*) \|$", README.split("## Validity rules")[1], flags=re.MULTILINE))
    rows.pop("rule")
    assert rows == RULES


def test_the_files_that_are_named_exist() -> None:
    for name in re.findall(r"`([\w./]+/[\w./]*)`", README):
        assert (ROOT / name).exists(), name
