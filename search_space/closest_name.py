"""Closest known name for a misspelled one."""

import difflib
from collections.abc import Iterable


def name_hint(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `` Did you mean 'bleu'?`` for a name close to a known one, else an empty text.

    Args:
        known: Valid names.
        cutoff: Least similarity in [0, 1]; see `difflib.get_close_matches`.
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""
