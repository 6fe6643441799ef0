"""Messages for the errors of pydantic: key path, requirement, given value."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from search_space.closest_name import closest_names, quoted_names

_PHRASES = {
    "missing": "must be given",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    "int_parsing_size": "must be a smaller number",
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    "finite_number": "must be a finite number",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must consist of a-z, 0-9, '.', '_' and '-', and begin with a letter or digit",
    **dict.fromkeys(("literal_error", "enum"), "must be {expected}"),
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dataclass_type", "dict_type"), "must be a mapping of keys to values"
    ),
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
}
_LONGEST = 60
_MOST_NAMED = 6


def problem_lines(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """Return one line for each problem of a study file, in the order of the keys of the model."""
    return [_line(details, model) for details in error.errors(include_url=False)]


def _line(details: ErrorDetails, model: type[BaseModel]) -> str:
    path = _path(details["loc"])
    if details["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{path}: unknown key; {_advice(path, model)}"
    if details["type"] == "value_error":
        told = str(details["ctx"]["error"]).removesuffix(".")
        if not path:
            return told
        has_got = "got " in told or isinstance(details["input"], Mapping)
        return f"{path}: {told}" if has_got else f"{path}: {told}; got {_short(details['input'])}"
    if details["type"] == "invalid_key":
        return f"{_path(details['loc'][:-1]) or 'the file'}: keys must be text; got {_short(details['input'])}"
    phrase = _PHRASES.get(details["type"])
    must = phrase.format(**details.get("ctx", {})) if phrase else details["msg"]
    if details["type"] == "missing":
        return f"{path}: {must}"
    if details["loc"] and details["loc"][-1] == "[key]":
        return f"{path}: must not be a key here; known: {must.removeprefix('must be ')}"
    return f"{path}: {must}; got {_short(details['input'])}"


def _path(loc: Sequence[int | str]) -> str:
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{part}" if text else part
    return text


def _advice(path: str, model: type[BaseModel]) -> str:
    """Return a hint with the valid key nearest to an unknown one: in its section first, then in the whole file."""
    prefix, _, name = path.rpartition(".")
    known = dict(_valid_keys(model))
    beside = [key for key in known if key.rpartition(".")[0] == prefix]
    names = {key.rpartition(".")[2]: key for key in [*reversed(list(known)), *beside]}
    near = closest_names(name, [key.rpartition(".")[2] for key in beside])
    if near:
        return f"did you mean {quoted_names(near)}?"
    if far := difflib.get_close_matches(name, list(names), n=1, cutoff=0.8):
        return f"did you mean {names[far[0]]!r}?"
    here = [key.rpartition(".")[2] for key in beside]
    likest = sorted(here, key=lambda key: -difflib.SequenceMatcher(None, name, key).ratio())
    more = f" and {len(here) - _MOST_NAMED} more" if len(here) > _MOST_NAMED else ""
    return f"known here, the nearest first: {', '.join(likest[:_MOST_NAMED])}{more}"


def _valid_keys(model: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, field in _keys_of(model).items():
        yield f"{prefix}{name}", field
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and _keys_of(kind):
                yield from _valid_keys(kind, f"{prefix}{name}.")


def _keys_of(section: type) -> Mapping[str, FieldInfo]:
    """Return the keys of a section, which is a model or a dataclass of pydantic; none of anything else."""
    found: Mapping[str, FieldInfo] = getattr(section, "model_fields", None) or getattr(
        section, "__pydantic_fields__", {}
    )
    return found


def _short(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
