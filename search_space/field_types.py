"""Types of user-written values, stricter than pydantic's own."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from search_space.closest_name import closest_names, quoted_names

_Names = TypeVar("_Names", bound=tuple[object, ...])


def _no_boolean(value: object) -> object:
    """Refuse ``true`` in place of a number; pydantic would read it as 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _exponent_as_number(value: object) -> object:
    """Return ``"1e3"`` as the number that YAML reads without quotes; pydantic takes other numbers as text."""
    with suppress(ValueError):
        return float(value) if isinstance(value, str) and "e" in value.lower() else value
    return value


def distinct(values: _Names) -> _Names:
    """Return the values if they are distinct.

    Raises:
        ValueError: If a value occurs twice.
    """
    if len(set(values)) != len(values):
        raise ValueError("must not name anything twice")
    return values


def choice(value: str, known: Iterable[str]) -> str:
    """Return the value if it is among the valid ones.

    Raises:
        ValueError: If it is not; the error names the closest valid value.
    """
    known = list(known)
    if value not in known:
        near = closest_names(value, known)
        hint = f"; did you mean {quoted_names(near)}?" if near else ""
        raise ValueError(f"must be among {', '.join(known)}; got {value!r}{hint}")
    return value


Integer = Annotated[int, BeforeValidator(_no_boolean), BeforeValidator(_exponent_as_number)]
Size = Annotated[Integer, Field(ge=1)]
Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
Distinct = AfterValidator(distinct)
