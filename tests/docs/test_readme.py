"""Names and length of the README."""

import re

from support.pages import ROOT

from search_space.forms import FORMS
from search_space.gates import GATES

README = (ROOT / "README.md").read_text()


def test_it_is_read_in_a_few_minutes():
    assert len(README.splitlines()) <= 120


def test_forms_and_gates_are_all_there():
    assert [name for name in (*FORMS, *GATES) if f"`{name}`" not in README] == []


def test_the_files_that_it_links_to_exist():
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
