"""The reference is what the program says of itself."""

import re

from support.pages import PAGES, ROOT
from support.processes import printed_by


def test_the_reference_is_what_the_program_says(tmp_path):
    printed_by(ROOT / "docs" / "generate.py", tmp_path)
    said = {path.name: path.read_text() for path in tmp_path.iterdir()}
    written = {path.name: path.read_text() for path in (ROOT / "docs" / "reference").iterdir()}
    assert len(said) == 9
    assert written == said, "run: make reference"


def test_every_key_of_a_study_file_that_a_page_names_is_one() -> None:
    keys: set[str] = set()
    for section in (ROOT / "docs" / "reference" / "study-file.md").read_text().split("\n## `")[1:]:
        keys |= {f"{section.partition('`')[0]}.{key}" for key in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)}
    sections = "|".join({key.partition(".")[0] for key in keys})
    named = re.compile(rf"(?:`|--set \"?)(({sections})\.[a-z_]+)(?![a-z_(])")
    wrong = {(page.name, key) for page in PAGES for key, _ in named.findall(page.read_text()) if key not in keys}
    assert keys >= {"pruning.rule", "space.values"}
    assert not wrong
