"""Names that people write, and the nearest one where they are wrong."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """`` Did you mean 'bleu'?`` for a name that is nearly a known one, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""
