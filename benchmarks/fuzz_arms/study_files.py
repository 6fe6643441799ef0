"""Damaged study files and overrides."""

import random
from pathlib import Path

import studies
from fuzz_arms.mutations import NASTY, damaged_text
from studies.errors import StudiesError
from studies.study_file.parser import parse_override, read_specification

_EXAMPLES = sorted((Path(studies.__file__).parent / "examples").glob("*.yaml"))
_KEYS = ("trials", "budget", "seed", "backbone", "training.steps", "search.published", "fleet.pack", "name")


class DamagedStudyFiles:
    """Load of a damaged study file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "study.yaml"
        self.texts = [file.read_text() for file in _EXAMPLES]

    def __call__(self, draw: random.Random) -> None:
        text = damaged_text(draw.choice(self.texts), draw)
        self.file.unlink(missing_ok=True)  # overwriting waits for the disk
        self.file.write_text(text, encoding="utf-8", errors="surrogatepass" if draw.random() < 0.01 else "replace")
        overrides = [f"{draw.choice(_KEYS)}={draw.choice(NASTY)}" for _ in range(draw.randint(0, 1))]
        try:
            read_specification(self.file, dict(map(parse_override, overrides)))
        except StudiesError as error:
            text = str(error)
        else:
            return
        assert text.strip()
        assert len(text) < 20_000
