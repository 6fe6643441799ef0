"""Safe reading of untrusted JSON: every problem is a ValueError."""

import json
from typing import Any

MAX_DIGITS = 100
"""Most digits of an integer."""


def read_json_text(text: str) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: If the text is not JSON, nests values too deeply, or contains too long an integer.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("values within values, too deep to be read") from None


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of more than {MAX_DIGITS} digits")
    return int(digits)


_DECODER = json.JSONDecoder(parse_int=_parse_integer)  # building one takes as long as reading a short text
