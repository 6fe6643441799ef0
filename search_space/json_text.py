"""Reads JSON that may be anybody's: whatever is wrong with it is a ValueError."""

import json
from typing import Any

MAX_DIGITS = 100
"""Of a whole number."""


def read_json_text(text: str) -> Any:
    """What a JSON text holds.

    Raises:
        ValueError: If it is no JSON, its values lie too deep within each other, or a whole number is too long.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("values within values, too deep to be read") from None


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_int=_whole)  # one a text would take as long as reading it
