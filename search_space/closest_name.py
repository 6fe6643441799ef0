"""Closest valid name for a misspelled one."""

import difflib
from collections.abc import Iterable


def name_hint(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `` Did you mean 'bleu'?`` for a name close to a valid one, else an empty text.

    Args:
        known: Valid names.
        cutoff: Least similarity in [0, 1]; see `difflib.get_close_matches`.
    """
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean {close[0]!r}?" if close else ""


def not_one_of(what: str, given: object, known: Iterable[str]) -> str:
    """Return the line that refuses a word: what it must be one of, what was given, and the closest one.

    Example:
        >>> not_one_of("kind", "pefft", ["peft", "merged"])
        "kind must be one of peft, merged; got 'pefft'. Did you mean 'peft'?"
    """
    words = list(known)
    return f"{what} must be one of {', '.join(words)}; got {given!r}.{name_hint(str(given), words)}"
