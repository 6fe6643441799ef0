"""Answers as bytes of JSON."""

import json
from collections.abc import Iterable

from dashboards.jsonable import jsonable


def to_json(value: object) -> bytes:
    """A value as compact JSON; bytes are JSON already."""
    if isinstance(value, bytes):
        return value
    return json.dumps(jsonable(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode(
        "utf-8", "replace"
    )


def joined(parts: Iterable[tuple[str, bytes]]) -> bytes:
    """An object of JSON from names and what is JSON already."""
    return b"{" + b",".join(json.dumps(name).encode() + b":" + value for name, value in parts) + b"}"


def listed(values: Iterable[bytes]) -> bytes:
    """A list of JSON from what is JSON already."""
    return b"[" + b",".join(values) + b"]"
