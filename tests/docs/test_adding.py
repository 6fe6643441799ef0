"""Pages on extensions, executed in a copy of the repository."""

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import rotation
from support.pages import ROOT, Block, blocks_of
from support.processes import run_python

PAGES = sorted((ROOT / "docs" / "how-to").glob("add-a-*.md"))
COPIED = ("search_space", "trial_runner", "studies", "dashboards", "deltaspace", "tests", "docs", "examples")
FILES = ("pyproject.toml", "README.md", "CONTRIBUTING.md", "Makefile", "mkdocs.yml")
MOST_PLACES = {"form": 5, "gate": 4, "family": 1, "task": 4, "sampler": 0, "metric": 0, "method": 0, "page": 2}
"""Files of the repository that an addition touches at the most."""
MOST_OF_ONES_OWN = {"task": 1, "sampler": 1, "metric": 1, "method": 1}
"""Modules of a package of one's own, beside its ``pyproject.toml``."""
LONG = (("add-a-form", "add-a-task"), ("add-a-gate", "add-a-family"))
"""Pages whose commands take long; a run does one half of them, and all others."""
DONE = [page for page in PAGES if not any(page.stem in half for half in LONG)]
DONE += [page for half in rotation.parts(LONG) for page in PAGES if page.stem in half]
INSTALLED_HERE = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", ".")
"""What keeps pip from the network and from the environment that runs the tests."""


def copy_of_the_repository(folder: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def is_ones_own(block: Block) -> bool:
    return block.file.startswith("my-")


def write(folder: Path, block: Block) -> None:
    path = folder / block.file
    if block.language != "diff":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text)
        return
    done = subprocess.run(
        ["git", "apply", "--unidiff-zero", "--recount", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=f"--- a/{block.file}\n+++ b/{block.file}\n{block.text}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{block.file}: {done.stderr}"


def commands_of(page: Path) -> Iterator[list[str]]:
    for block in blocks_of(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            program, *words = shlex.split(line)
            assert program == "python", line
            yield [*words, *INSTALLED_HERE] if words[:2] == ["-m", "pip"] else words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_touches_no_more_places_than_it_may(page):
    thing = page.stem.removeprefix("add-a-")
    written = {(is_ones_own(block), block.file) for block in blocks_of(page) if block.file}
    own = {file for is_own, file in written if is_own}
    assert len(written) - len(own) <= MOST_PLACES[thing]
    assert len({file for file in own if not file.endswith("/pyproject.toml")}) <= MOST_OF_ONES_OWN.get(thing, 0)


@pytest.mark.slow
@pytest.mark.parametrize("page", DONE, ids=lambda page: page.stem)
def test_extension_of_a_page_keeps_the_contracts(page, tmp_path):
    copy = copy_of_the_repository(tmp_path / "copy")
    written = [block for block in blocks_of(page) if block.file]
    commands = list(commands_of(page))
    assert written
    assert commands
    for block in written:
        write(copy, block)
    for command in commands:
        done = run_python(*command, folder=copy, PYTHONPATH=str(copy))
        assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"


@pytest.mark.slow
def test_a_form_without_its_word_among_the_tensors_fails_by_name(tmp_path):
    page = ROOT / "docs" / "how-to" / "add-a-form.md"
    left_out = "trial_runner/deltas/__init__.py"
    copy = copy_of_the_repository(tmp_path / "copy")
    for block in blocks_of(page):
        if block.file and block.file != left_out:
            write(copy, block)
    contract = next(command for command in commands_of(page) if "tests/contracts/test_forms.py" in command)
    done = run_python(*contract, folder=copy, PYTHONPATH=str(copy))
    assert done.returncode == 1
    assert "wave needs its module in trial_runner/deltas, and its word in DELTAS" in done.stdout
    assert left_out in {block.file for block in blocks_of(page)}
