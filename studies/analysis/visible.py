"""Untrusted text for terminals: controls and changes of direction are escaped."""

import re
import sys
from collections.abc import Iterable

# Controls but for line feed and tab, marks and overrides of direction, separators of lines, halves of surrogates, BOM.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def visible(text: str) -> str:
    r"""Return the text with control characters escaped as in Python: ``\x1b``, ``\u202e``."""
    return _OBEYED.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return JSON with the same characters in JSON's escapes, which has the same meaning."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def announce(lines: Iterable[str]) -> None:
    """Write lines to stderr before any work begins."""
    for line in lines:
        sys.stderr.write(f"{visible(line)}\n")
