"""Every block of the README and of the documentation, run where a reader stands after ``make search``."""

import shutil
from pathlib import Path

import pytest
import yaml
from support.export_commands import write_rows
from support.pages import PAGES, ROOT, SMALLER_TASK, PageRun, blocks_of

from deltaspace.commands.main import main

PAGES_THAT_RUN = [page for page in PAGES if page.stem != "tutorial" and any(block.runs for block in blocks_of(page))]
ROWS = 60
STUDY = {
    "name": "docstrings",
    "backbone": "embedded",
    "task": SMALLER_TASK,
    "budget": "0.5%",
    "trials": 14,
    "training": {"steps": 4, "batch_size": 8},
    "pruning": {"first_rung_steps": 2},
    "fleet": {"backend": "inline"},
}
"""What stands for the shipped study: its name, and a task that is trained in seconds."""


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the shipped study was launched, next to a reader's own data."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("articles", "gsm8k_chat", "DATA/gsm8k_chat", "DATA/user_instructions_chat"):
        (folder / name).mkdir(parents=True)
    rows = [{"sentence": f"number {n} was {word}", "label": word} for n in range(ROWS) for word in ("good", "bad")]
    write_rows(folder / "reviews" / "train.jsonl", rows)
    write_rows(folder / "new.jsonl", [{"sentence": "number 7 was good"}])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("DELTASPACE_STORAGE", raising=False)
        patch.setenv("DELTASPACE_AUTO_PRECISION", "fp32")
        Path("docstrings.yaml").write_text(yaml.safe_dump(STUDY))
        assert main(["launch", "docstrings.yaml"]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_THAT_RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run(page, searched, tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    shutil.copytree(searched, here)
    monkeypatch.chdir(here)
    monkeypatch.delenv("DELTASPACE_STORAGE", raising=False)
    monkeypatch.setenv("DELTASPACE_AUTO_PRECISION", "fp32")  # bf16 is slow where a processor has no such products
    PageRun(capsys).run_page(page)


def test_every_block_names_its_language():
    assert [f"{page.name}:{block.line}" for page in PAGES for block in blocks_of(page) if not block.language] == []
