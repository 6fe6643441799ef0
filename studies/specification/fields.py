"""Types of the study file's values: what pydantic alone would let through is refused here."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from search_space.checked import Positive, choice, distinct
from search_space.counting.budget import ParameterBudget
from search_space.errors import SearchSpaceError
from search_space.forms import FORMS
from search_space.published import METHODS
from search_space.published.point import PublishedPoint
from search_space.space.options import SEARCHED_FORMS, SEARCHED_GATES
from studies.specification.units import parse_duration

OWN_SAMPLERS = ("tpe", "random", "nsga2", "gp", "qmc")
"""The project's own samplers, so that reading a study file loads none of them."""


def _ascending(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] <= pair[1]:
        raise ValueError("must be two numbers, the lower one first")
    return pair


def _budget(value: object) -> str | int | float:
    """The budget as written, once it is known that it can be read."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a share such as 0.5% or a number of parameters")
    try:
        ParameterBudget.parse(value)
    except SearchSpaceError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return value


def _duration(value: object) -> float | None:
    return None if value is None else parse_duration(value)


def auto_or_count(value: object) -> object:
    """``"auto"`` or a whole number from 1."""
    if value == "auto":
        return value
    try:
        count = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else 0
    except ValueError:
        count = 0
    if count < 1:
        raise ValueError("must be auto or a whole number from 1")
    return count


def auto_count_or_none(value: object) -> object:
    """``"auto"``, a whole number from 1, or nothing."""
    return None if value is None else auto_or_count(value)


def below_one(pair: tuple[float, float]) -> tuple[float, float]:
    """A range that ends below 1."""
    if not pair[1] < 1:
        raise ValueError("must be a range within 0 and 1")
    return pair


def published_methods(value: object) -> str | tuple[PublishedPoint, ...]:
    """``"compared"``, ``"all"``, ``"none"``, or a list of published methods and points such as ``lora_qv:r=8``."""
    if isinstance(value, str) and value in ("compared", "all", "none"):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be compared, all, none, or a list of published methods")
    return distinct(tuple(_point(text) for text in value))


def _point(text: str) -> PublishedPoint:
    choice(text.partition(":")[0].strip(), list(METHODS))
    try:
        return PublishedPoint(text)
    except SearchSpaceError as error:
        raise ValueError(str(error).rstrip(".")) from error


def _form_name(value: str) -> str:
    return choice(value, SEARCHED_FORMS)


def _rated_form(value: str) -> str:
    return choice(value, list(FORMS))


def _gate_name(value: str) -> str:
    return choice(value, SEARCHED_GATES)


def _sampler_name(value: str) -> str:
    if value in OWN_SAMPLERS:
        return value
    from studies.search.samplers import SAMPLERS  # loads optuna

    return choice(value, tuple(SAMPLERS))


Range = Annotated[tuple[Positive, Positive], AfterValidator(_ascending)]
Budget = Annotated[str | int | float, BeforeValidator(_budget)]
Duration = Annotated[float | None, BeforeValidator(_duration)]
SamplerName = Annotated[str, AfterValidator(_sampler_name)]
FormName = Annotated[str, AfterValidator(_form_name)]
RatedForm = Annotated[str, AfterValidator(_rated_form)]
GateName = Annotated[str, AfterValidator(_gate_name)]
