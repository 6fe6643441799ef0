"""The reference is what the program says of itself."""

import os
import subprocess
import sys
from pathlib import Path

from support.pages import ROOT


def test_the_reference_is_what_the_program_says(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    written = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").iterdir()}
    assert len(said) == 9
    assert written == said, "run: make reference"
