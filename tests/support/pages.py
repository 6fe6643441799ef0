"""Pages of the documentation: their fenced blocks, and the meaning of running one.

A block of ``console`` contains commands. One of ``python`` is a program that continues through the page. One of
``yaml`` is a study file that is saved under its name. Blocks of ``text`` are only read.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from deltaspace.commands.main import main
from studies.study_file import read_specification

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
RUN = ("console", "python", "yaml")
TASK = {"name": "docstrings"}
SMALLER_TASK = {"folder": "reviews", "text": "sentence", "label": "label", "max_tokens": 16}
"""What stands for it where a reader has such a folder, so that it is trained in seconds."""
SMALLER = {"trials": 6, "training": {"steps": 4, "batch_size": 8}, "pruning": {"first_rung_steps": 2}}
"""What a study file that is valid as it stands gets before it is launched, so that it takes seconds."""
SETTINGS = ("trials=12", "training.steps=4", "training.batch_size=8", "pruning.first_rung_steps=2")
"""The like for a study file that a command wrote."""
SEEDS = "2"
"""Of a confirmation, however many a page asks for."""
ROWS = "400"
"""Of a table that a page writes, where it has thousands."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    text: str
    line: int
    file: str

    @property
    def runs(self) -> bool:
        """Whether the block is something to run, not a file to write."""
        return self.language in RUN and not self.file


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```", text, flags=re.DOTALL | re.MULTILINE)
    return [
        Block(
            language=one[2],
            text=re.sub(rf"^{one[1]}", "", one[4], flags=re.MULTILINE),
            line=text[: one.start()].count("\n") + 1,
            file="".join(re.findall(r'title="(.+?)"', one[3])),
        )
        for one in found
    ]


class PageRun:
    """Runs the blocks of one page, in their order, in the working directory.

    Args:
        capsys: Fixture of the test, with the output of the last command.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._names: dict[str, object] = {"__name__": "page"}
        self._written: set[str] = set()

    def run_page(self, page: Path) -> None:
        """Run every block that runs; add its line to an error."""
        run = {"console": self._commands, "python": self._program, "yaml": self._study}
        for block in blocks_of(page):
            try:
                if block.runs:
                    run[block.language](block)
            except (Exception, SystemExit) as error:
                error.add_note(f"{page.relative_to(ROOT)}:{block.line}")
                raise

    def _program(self, block: Block) -> None:
        fewer = re.sub(r"\bseeds=\d+", f"seeds={SEEDS}", block.text)
        fewer = re.sub(r"\brange\(\d{4,}\)", f"range({ROWS})", fewer)
        exec(compile(fewer, f"line {block.line}", "exec"), self._names)

    def _study(self, block: Block) -> None:
        given = yaml.safe_load(block.text)
        if "name" not in given:  # a part of a study file
            given = {"name": "part", "backbone": "embedded", "task": TASK, "budget": "0.5%"} | given
        path = Path(f"{given['name']}.yaml")
        path.write_text(yaml.safe_dump(given))
        read_specification(path)
        smaller = {"task": SMALLER_TASK} if given.get("task") == TASK and Path("reviews").is_dir() else {}
        path.write_text(yaml.safe_dump(given | SMALLER | smaller))
        self._written.add(str(path))

    def _commands(self, block: Block) -> None:
        for line in block.text.replace("\\\n", "").splitlines():
            words = shlex.split(line.split("  #")[0])
            if not words:
                continue
            program, *arguments = words
            if program == "make":
                assert re.search(rf"^{arguments[0]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE), line
                continue
            assert Path(program).name == "deltaspace", f"a console block runs make and deltaspace; got: {line}"
            if arguments[0] == "launch":
                arguments += ["--set", "fleet.backend=inline"]
                if Path(arguments[1]).is_file() and arguments[1] not in self._written:
                    arguments += [word for setting in SETTINGS for word in ("--set", setting)]
            if arguments[0] == "confirm":
                arguments += ["--seeds", SEEDS]  # the last one counts
            if arguments[0] == "check":
                arguments.append("--no-steps")
            if "--task" in arguments:  # the reader's own study of that name, which is small
                arguments[arguments.index("--task") + 1] += ".yaml"
            assert main(arguments) == 0, f"{line}\n{self._capsys.readouterr().err}"
            assert any(self._capsys.readouterr()), line
