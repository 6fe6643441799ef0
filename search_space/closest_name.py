"""Closest valid names for an unknown one."""

import difflib
from collections.abc import Iterable

_OTHER_WORDS = {
    "lora": "lowrank",
    "adapter": "bottleneck",
    "prefix": "softmax_memory",
    "ia3": "diag",
    "bitfit": "const",
}
"""Names of forms by the methods that are known for them."""

_MOST_CHARACTERS = 100
"""Longest name for which others are looked for; a longer one is no misspelling."""


def closest_names(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Return the valid names that another most likely stands for: at most three, none if nothing is near.

    A form is found by its best known method, and methods by the first part of their names.

    Args:
        known: Valid names.
        cutoff: Least similarity in [0, 1]; see `difflib.get_close_matches`.
    """
    if len(name) > _MOST_CHARACTERS:
        return []
    names, word = list(known), name.lower()
    if _OTHER_WORDS.get(word) in names:
        return [_OTHER_WORDS[word]]
    longer = [one for one in names if one.startswith(f"{word}_")]
    return longer[:3] or difflib.get_close_matches(name, names, n=1, cutoff=cutoff)


def quoted_names(names: Iterable[str]) -> str:
    """Return names such as ``'lora_qv', 'lora_kv' or 'lora_ffn'``."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def name_hint(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return `` Did you mean 'bleu'?`` for a name close to a valid one, else an empty text.

    Args:
        known: Valid names.
        cutoff: Least similarity in [0, 1]; see `difflib.get_close_matches`.
    """
    close = closest_names(name, known, cutoff=cutoff)
    return f" Did you mean {quoted_names(close)}?" if close else ""


def not_one_of(what: str, given: object, known: Iterable[str]) -> str:
    """Return the line that refuses a word: what it must be one of, what was given, and the closest one.

    Example:
        >>> not_one_of("kind", "pefft", ["peft", "merged"])
        "kind must be one of peft, merged; got 'pefft'. Did you mean 'peft'?"
    """
    words = list(known)
    return f"{what} must be one of {', '.join(words)}; got {given!r}.{name_hint(str(given), words)}"
