"""Structured data as a line of text, for models that read text (Li & Liang 2021)."""

from typing import Any

_BAR = " | "


def linearise(value: Any) -> Any:
    """``| subject : predicate : object`` for each triple, one after the other; what is no list stays as it is.

    A triple is ``"s | p | o"``, a list of three texts, or a mapping with ``subject``, ``property`` (or ``predicate``)
    and ``object``. Lists of lists of triples, which the hub's WebNLG has, are read through. Underscores become spaces.

    Returns:
        The line; the value itself if it is no list of triples.
    """
    if not isinstance(value, list) or not value:
        return value
    triples = _triples(value)
    if triples is None:
        return value
    return " ".join("| " + " : ".join(part.replace("_", " ").strip() for part in triple) for triple in triples)


def _triples(value: list[Any]) -> list[tuple[str, ...]] | None:
    """The triples of a list; None if something else is in it."""
    if len(value) == 3 and all(isinstance(part, str) and _BAR not in part for part in value):
        return [tuple(value)]
    found: list[tuple[str, ...]] = []
    for each in value:
        inner = _triples(each) if isinstance(each, list) and each else _triple(each)
        if inner is None:
            return None
        found += inner
    return found


def _triple(value: Any) -> list[tuple[str, ...]] | None:
    if isinstance(value, str):
        parts = tuple(value.split(_BAR))
        return [parts] if len(parts) == 3 else None
    if not isinstance(value, dict):
        return None
    named = (value.get("subject"), value.get("property", value.get("predicate")), value.get("object"))
    return [tuple(str(part) for part in named)] if None not in named else None
