"""Types of values of the study file, stricter than those of pydantic."""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, PlainValidator

from search_space.errors import SearchSpaceError
from search_space.field_types import choice, distinct
from search_space.parameter_counts.budget import read_budget
from studies.errors import SpecificationError
from trial_runner.backbones import BackboneSource

BackendName = Literal["ray", "inline"]
"""Names of backends; see `studies.backends`."""

LARGEST = 1_000_000
"""Largest count of trials, workers or replicates: more is a typing error."""

OWN_SAMPLERS = ("tpe", "random", "nsga2", "gp", "qmc", "factored")
"""Names of the project's own samplers, here so that reading a study file imports none of them."""
_PARTS = re.compile(r"(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s?)?")
_NUMBER = re.compile(r"\+?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}


class Section(BaseModel):
    """Section of the study file: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def _budget(value: object) -> str | int | float:
    """Return the budget as written, after checking that it can be read."""
    try:
        read_budget(value)  # type: ignore[arg-type]
    except SearchSpaceError as error:
        raise ValueError(str(error).removeprefix("a ").removeprefix("budget ").rstrip(".")) from error
    return value  # type: ignore[return-value]


def parse_duration(value: object) -> float:
    """Return the seconds of a duration: ``"90s"``, ``"5m"``, ``"1h30m"``, ``"300"`` or a number of seconds.

    Raises:
        ValueError: If it cannot be read, or is not above 0.
    """
    seconds: float | None = None
    if isinstance(value, str):
        text = value.strip().lower().replace(" ", "")
        match = _PARTS.fullmatch(text)
        if _NUMBER.fullmatch(text):
            seconds = float(text)
        elif match and any(match.groupdict().values()):
            seconds = sum(float(match[unit]) * _SECONDS[unit] for unit in "hms" if match[unit])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if seconds is None or not 0 < seconds < float("inf"):
        raise ValueError("must be a time above 0, such as 90s, 5m, 1h30m or a number of seconds")
    return seconds


def seconds_of(name: str, value: object) -> float:
    """Return the seconds of a duration, with its name in the error.

    Raises:
        SpecificationError: If it cannot be read, or is not above 0.
    """
    try:
        return parse_duration(value)
    except ValueError as error:
        raise SpecificationError(f"{name} {error}; got {value!r}.") from None


def whole_number(*words: str | None, least: int = 1) -> BeforeValidator:
    """Return a type of whole numbers from a least one on, also as text, and of some words."""
    named = ", ".join(word for word in words if word)
    must = f"must be {f'{named} or ' if named else ''}a whole number from {least} to {LARGEST:,}"

    def check(value: object) -> object:
        if value in words:
            return value
        try:
            number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else least - 1
        except ValueError:
            number = least - 1
        if not least <= number <= LARGEST:
            raise ValueError(must)
        return number

    return BeforeValidator(check)


def auto_or_one_gpu(value: object) -> object:
    """Check that a value is ``"auto"``, 0 or 1."""
    if value == "auto":
        return value
    if isinstance(value, int | str) and not isinstance(value, bool) and value in (0, 1, "0", "1"):
        return int(value)
    raise ValueError("must be auto, 0 or 1, since a worker, or a shard of it, has one GPU at most")


LEARN_FROM = ("auto", "none")
"""Words that stand for earlier studies; anything else is a name."""


def _learn_from(value: object) -> str | tuple[str, ...]:
    """Return ``auto``, ``none``, or the names of earlier studies; a single name needs no list."""
    if isinstance(value, str) and value in LEARN_FROM:
        return value
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("must be auto, none, or a list of the names of earlier studies")
    return distinct(tuple(names))


def score_first(objectives: tuple[str, ...]) -> tuple[str, ...]:
    """Check that objectives are the score, alone or with one size."""
    if objectives[:1] != ("score",) or len(objectives) > 2 or len(set(objectives)) < len(objectives):
        raise ValueError("must be [score], [score, parameters] or [score, extra_flops]")
    return objectives


def _sampler(value: object) -> object:
    if isinstance(value, dict) or (isinstance(value, str) and (value in OWN_SAMPLERS or ":" in value)):
        return value
    from studies.search.samplers import SAMPLERS  # loads optuna

    return choice(str(value), tuple(SAMPLERS))


def _source(value: object) -> object:
    """Return the backbone of a bare name."""
    return {"name": value} if isinstance(value, str) else value


Source = Annotated[BackboneSource, BeforeValidator(_source), PlainSerializer(BackboneSource.as_json)]
Budget = Annotated[str | int | float, BeforeValidator(_budget)]
Duration = Annotated[float | None, BeforeValidator(lambda value: None if value is None else parse_duration(value))]
LearnFrom = Annotated[str | tuple[str, ...], BeforeValidator(_learn_from)]
SamplerOption = Annotated[str | dict[str, Any], PlainValidator(_sampler)]
AutoOrCount = Annotated[Literal["auto"] | int, whole_number("auto")]
