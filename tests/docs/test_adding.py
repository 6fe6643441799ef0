"""The pages that say how something is added, done in a copy of the repository."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks_of

PAGES = sorted((ROOT / "docs" / "how-to").glob("add-a-*.md"))
COPIED = ("search_space", "trial_runner", "studies", "dashboards", "deltaspace", "tests", "docs", "examples")
FILES = ("pyproject.toml", "README.md", "Makefile", "mkdocs.yml")
MOST_PLACES = {"form": 5, "gate": 4, "family": 2, "task": 4, "sampler": 1, "metric": 1, "method": 1, "page": 2}
"""Files of the repository, or of one's own package, that an addition touches at the most."""


def copy_of_the_repository(folder: Path) -> Path:
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    return folder


def write(folder: Path, name: str, language: str, text: str) -> None:
    if language == "diff":
        patch = f"--- a/{name}\n+++ b/{name}\n{text}"
        done = subprocess.run(
            ["git", "apply", "--unidiff-zero", "--recount", "--whitespace=nowarn", "-"],
            cwd=folder,
            input=patch,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"
        return
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_is_done_and_keeps_the_contracts(page: Path, tmp_path: Path) -> None:
    copy = copy_of_the_repository(tmp_path / "copy")
    files = [block for block in blocks_of(page) if block.file]
    assert 0 < len({block.file for block in files}) <= MOST_PLACES[page.stem.removeprefix("add-a-")]
    for block in files:
        write(copy, block.file, block.language, block.text)
    commands = [line for block in blocks_of(page) if block.language == "sh" for line in block.text.splitlines()]
    assert commands
    for command in commands:
        program, *arguments = re.sub(r"^python", sys.executable, command).split()
        done = subprocess.run(
            [program, *arguments],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
