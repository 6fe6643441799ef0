"""Terminal output as text files that tests compare: at 80, 120 and 200 columns.

``DELTASPACE_WRITE_PICTURES=1`` writes the texts, and the pictures of the documentation, again.
"""

import io
import os
import re
from pathlib import Path

from rich.console import RenderableType
from rich.terminal_theme import DIMMED_MONOKAI
from support.pages import ROOT

from dashboards.terminal.layout import Terminal

WIDTHS = (80, 120, 200)
SCREENS = ROOT / "tests" / "data" / "screens"
PICTURES = ROOT / "docs" / "pictures" / "terminal"
_WRITE = "DELTASPACE_WRITE_PICTURES"
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\n\s*\}\n", re.DOTALL)


def screen(renderable: RenderableType, width: int = 200) -> str:
    """Return the output of a terminal of a width, without colours."""
    file = io.StringIO()
    Terminal(file, width=width, color_system=None, force_jupyter=False).print(renderable)
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return "\n".join(lines) + "\n"


def kept(name: str, text: str) -> str:
    """Return the stored text of a screen, or write it."""
    path = SCREENS / f"{name}.txt"
    if _is_writing():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")


def picture(name: str, renderable: RenderableType, width: int) -> Path:
    """Return the picture of a screen in the documentation, or write it."""
    path = PICTURES / f"{name}-{width}.svg"
    if _is_writing():
        console = Terminal(io.StringIO(), width=width, record=True, color_system="truecolor", force_jupyter=False)
        console.print(renderable)
        drawn = console.export_svg(title="deltaspace", theme=DIMMED_MONOKAI, unique_id=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_FONT_FACE.sub("\n", drawn), encoding="utf-8")
    return path


def _is_writing() -> bool:
    return os.environ.get(_WRITE) == "1"
