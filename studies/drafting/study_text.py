"""A draft as the text of a study file, with a comment beside each key that was found rather than chosen."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from studies.queries.visible import visible

_COMMENT_COLUMN = 36


def study_text(head: tuple[str, ...], keys: Mapping[str, Any], comments: Mapping[str, str]) -> str:
    """YAML of the keys, in their order.

    Args:
        head: Comments before everything.
        keys: Of the study file; sections are mappings.
        comments: By key path, such as ``task.text``.
    """
    lines = [f"# {_one_line(line)}".rstrip() for line in head]
    return "\n".join([*lines, *_lines(keys, comments, "", "")]) + "\n"


def _lines(keys: Mapping[str, Any], comments: Mapping[str, str], path: str, indent: str) -> Iterator[str]:
    for key, value in keys.items():
        said = comments.get(f"{path}{key}", "")
        if isinstance(value, Mapping) and value:
            yield _commented(f"{indent}{key}:", said)
            yield from _lines(value, comments, f"{path}{key}.", f"{indent}  ")
        else:
            yield _commented(f"{indent}{_flow({key: value})}", said)


def _flow(pair: Mapping[str, Any]) -> str:
    """``key: value`` on one line."""
    ((key, value),) = pair.items()
    if isinstance(value, str) and not value.isprintable():
        return f"{key}: {json.dumps(value)}"
    text: str = yaml.safe_dump(pair, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False)
    return text.strip()[1:-1]


def _commented(line: str, said: str) -> str:
    return f"{line.ljust(_COMMENT_COLUMN - 2)}  # {_one_line(said)}" if said else line


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))
