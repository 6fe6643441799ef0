"""Lists converted to one text: the turns of a dialogue, and structured data as a line (Li & Liang 2021)."""

from typing import Any

_SYSTEM = "system"


def is_conversation(value: Any) -> bool:
    """Return whether a value is a list of messages, each with a ``role`` and a ``content``."""
    return isinstance(value, list) and bool(value) and all(_is_message(each) for each in value)


def as_one_text(value: Any, join: str | None) -> Any:
    """Join the texts of a list; a message becomes ``role: content``. Any other value is returned unchanged.

    Args:
        value: Value of a column.
        join: Separator between the texts; None leaves lists unchanged.
    """
    if join is None or not isinstance(value, list):
        return value
    texts = [f"{each['role']}: {each['content']}" if _is_message(each) else each for each in value]
    if not all(isinstance(text, str) for text in texts):
        return value
    return join.join(text.strip() for text in texts if text.strip())


def before_the_answer(value: Any) -> Any:
    """Return a conversation without its last message; any other value unchanged."""
    return value[:-1] if is_conversation(value) else value


def up_to_the_question(value: Any) -> Any:
    """Return a conversation up to its last question: without its last message where that is an answer.

    The first role other than the system's asks the questions. A value that is no conversation is returned unchanged.
    """
    if not is_conversation(value):
        return value
    roles = [each["role"] for each in value]
    asking = next((role for role in roles if role != _SYSTEM), _SYSTEM)
    return value if roles[-1] == asking else before_the_answer(value)


def last_answer(value: Any) -> Any:
    """Return the content of the last message of a conversation; any other value unchanged."""
    return value[-1]["content"] if is_conversation(value) else value


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


_BAR = " | "


def linearise(value: Any) -> Any:
    """Write a list of triples as one line, ``| subject : predicate : object`` for each triple.

    A triple is ``"s | p | o"``, a list of three texts, or a mapping with ``subject``, ``property`` (or ``predicate``)
    and ``object``. Nested lists of triples, as in the hub's WebNLG, are flattened. Underscores become spaces.

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
    """Return the triples of a list, flattened; None if it contains anything else."""
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
