"""JSON form of configurations in the database, snapshots and exports; without Python paths or pickles."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import StrEnum
from functools import lru_cache
from typing import Any

from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.edit import Edit
from search_space.errors import CodecError, InvalidEditError
from search_space.forms import FORMS, Form
from search_space.gates import GATES, Gate
from search_space.layers import LAYER_CHOICES, Layers

SCHEMA_VERSION = 2

_LAYER_CHOICES = {choice.name: choice for choice in LAYER_CHOICES}
_EDIT_FIELDS = ("site", "layers", "write", "read", "form", "gate")


def configuration_to_json(configuration: Configuration) -> dict[str, Any]:
    """Return the JSON form of a configuration, with its schema version."""
    edits = [{name: _to_json(getattr(edit, name)) for name in _EDIT_FIELDS} for edit in configuration.edits]
    return {"schema_version": SCHEMA_VERSION, "edits": edits}


def configuration_from_json(data: Mapping[str, Any]) -> Configuration:
    """Build a configuration from its JSON form, of this schema version.

    Raises:
        CodecError: If the data have another schema version, are incomplete, or are not a valid configuration.
    """
    version = data.get("schema_version") if isinstance(data, Mapping) else None
    if version != SCHEMA_VERSION:
        raise CodecError(
            f"a configuration must be of schema version {SCHEMA_VERSION}; got {version!r}. "
            "Use the release that wrote it."
        )
    try:
        _check_fields("configuration", data, ("schema_version", "edits"))
        return Configuration(edits=tuple(_edit_from_json(edit) for edit in data["edits"]))
    except CodecError:
        raise
    except InvalidEditError as error:
        raise CodecError(f"cannot read a stored configuration: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise CodecError(f"cannot read a stored configuration: {error}.") from error


def _to_json(value: Any) -> Any:
    """Return a form, gate or layer choice as its name and fields, and an enum as its text."""
    if isinstance(value, Form | Gate | Layers):
        return {"name": value.name} | {field.name: _to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _check_fields(noun: str, data: Mapping[str, Any], expected: Sequence[str]) -> None:
    """Check that all fields are there: a default for a lost one would change the configuration without notice."""
    if not isinstance(data, Mapping):
        raise CodecError(f"a stored {noun} must be a mapping; got {type(data).__name__}.")
    if set(data) != set(expected):
        missing = ", ".join(sorted(set(expected) - set(data))) or "none"
        unknown = ", ".join(sorted(map(str, set(data) - set(expected)))) or "none"
        raise CodecError(f"a stored {noun} must have exactly its fields; got missing: {missing}; unknown: {unknown}.")


def _edit_from_json(data: Mapping[str, Any]) -> Edit:
    _check_fields("edit", data, _EDIT_FIELDS)
    return Edit(
        site=Site(data["site"]),
        write=Port(data["write"]),
        read=None if data["read"] is None else Port(data["read"]),
        form=_value_from_json(data["form"], FORMS),
        gate=_value_from_json(data["gate"], GATES),
        layers=_value_from_json(data["layers"], _LAYER_CHOICES),
    )


def _value_from_json(data: Mapping[str, Any], kinds: Mapping[str, Any]) -> Any:
    name = data.get("name")
    if not isinstance(name, str) or name not in kinds:
        raise CodecError(f"a stored form, gate or layer choice must be one of {', '.join(kinds)}; got {name!r}.")
    kind = kinds[name]
    types = _field_types(kind)
    _check_fields(kind.name, data, ("name", *types))
    return from_fields(kind, {each: data[each] for each in types})


def from_fields(kind: Any, stored: Mapping[str, Any]) -> Any:
    """Build a form, gate or layer choice from some fields as in JSON; the others keep their defaults."""
    types = _field_types(kind)
    return kind(**{each: _field_value(value, types[each]) for each, value in stored.items()})


@lru_cache
def _field_types(kind: Any) -> Mapping[str, Any]:
    """Return the type of each field by name; cached, since thousands of edits have few kinds."""
    return {field.name: field.type for field in fields(kind)}


def _field_value(stored: Any, expected: Any) -> Any:
    """Convert a field's stored value to its type."""
    if expected is bool and not isinstance(stored, bool):
        raise ValueError(f"a flag must be true or false; got {stored!r}")
    return expected(stored) if isinstance(expected, type) and issubclass(expected, StrEnum) else stored
