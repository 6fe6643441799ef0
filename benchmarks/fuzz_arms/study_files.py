"""Damaged study files, and overrides."""

import random
from pathlib import Path

import studies
from fuzz_arms.mutations import NASTY, damaged_text
from studies.errors import StudiesError
from studies.study_file.parser import parse_override, read_specification

_EXAMPLES = sorted((Path(studies.__file__).parent / "examples").glob("*.yaml"))
_KEYS = ("trials", "budget", "seed", "backbone", "training.steps", "search.published", "fleet.pack", "name")


class StudyFiles:
    """Reads one damaged study file at a time."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "study.yaml"
        self.texts = [file.read_text() for file in _EXAMPLES]

    def __call__(self, draw: random.Random) -> None:
        text = damaged_text(draw.choice(self.texts), draw)
        self.file.unlink(missing_ok=True)  # to write over a file waits for the disk
        self.file.write_text(text, encoding="utf-8", errors="surrogatepass" if draw.random() < 0.01 else "replace")
        overrides = [f"{draw.choice(_KEYS)}={draw.choice(NASTY)}" for _ in range(draw.randint(0, 1))]
        try:
            read_specification(self.file, dict(map(parse_override, overrides)))
        except StudiesError as error:
            said = str(error)
        else:
            return
        assert said.strip()
        assert len(said) < 20_000
