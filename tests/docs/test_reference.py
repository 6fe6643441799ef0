"""Generated reference pages, against the program."""

import re

from support.pages import PAGES, ROOT


def test_every_key_of_a_study_file_that_a_page_names_is_one() -> None:
    keys: set[str] = set()
    for section in (ROOT / "docs" / "reference" / "study-file.md").read_text().split("\n## `")[1:]:
        keys |= {f"{section.partition('`')[0]}.{key}" for key in re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)}
    sections = "|".join({key.partition(".")[0] for key in keys})
    named = re.compile(rf"(?:`|--set \"?)(({sections})\.[a-z_]+)(?![a-z_(])")
    wrong = {(page.name, key) for page in PAGES for key, _ in named.findall(page.read_text()) if key not in keys}
    assert keys >= {"pruning.rule", "space.values"}
    assert not wrong
