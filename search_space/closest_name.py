"""Names that people write, and the nearest one where they are wrong."""

import difflib
from collections.abc import Iterable


def name_hint(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """`` Did you mean 'bleu'?`` for a name that is nearly a known one, else nothing.

    Args:
        known: What could have been meant.
        cutoff: How near is near, in [0, 1]; see `difflib.get_close_matches`.
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""
