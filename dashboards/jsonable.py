"""Conversion of dataclasses and their values to JSON."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath

from search_space.codec import configuration_to_json
from search_space.configuration import Configuration


def jsonable(value: object) -> object:
    """Convert a value to types of JSON.

    Dataclasses become objects of the fields in their `repr`; enumerations become their values, times ISO 8601, paths
    text. A configuration has the form of its record in the ledger. Numbers that JSON lacks (NaN, infinity) become null.
    """
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Configuration):
        return configuration_to_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value) if field.repr}
    if isinstance(value, Mapping):
        return {str(jsonable(key)): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [jsonable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_json(value: object) -> bytes:
    """Return a value as compact JSON."""
    text = json.dumps(jsonable(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")
