"""Text from anywhere as a terminal may be given it: nothing in it is obeyed, nothing turns its direction."""

import re
import sys
from collections.abc import Iterable

# Controls but for line feed and tab, marks and overrides of direction, separators of lines, halves of surrogates, BOM.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def visible(text: str) -> str:
    r"""The text with what a terminal would obey written out, as Python writes it: ``\x1b``, ``\u202e``."""
    return _OBEYED.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """JSON with the same characters as JSON writes them; it means the same."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def announce(lines: Iterable[str]) -> None:
    """Write lines that are worth knowing before any work begins to stderr."""
    for line in lines:
        sys.stderr.write(f"{visible(line)}\n")
