"""Frozen values as what JSON knows."""

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
    """A frozen value as what JSON knows: fields that it shows, enumerations by value, times as ISO 8601, paths as text.

    A configuration is what the ledger has of it. Numbers that JSON does not have (NaN, infinity) become null.
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
    """A value as compact JSON."""
    text = json.dumps(jsonable(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace")
