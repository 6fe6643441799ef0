"""Types of the study file's values: what pydantic alone would let through is refused here."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from search_space.counting.budget import ParameterBudget
from search_space.errors import SearchSpaceError
from search_space.forms import FORMS
from search_space.published import PUBLISHED
from search_space.space.options import SEARCHED_FORMS, SEARCHED_GATES, parse_point
from studies.specification.presets import PRESETS
from studies.specification.units import parse_duration
from trial_runner.tasks.classification.metrics import METRICS
from trial_runner.tasks.generation.metrics import LOSS_METRICS, TEXT_METRICS

_Names = TypeVar("_Names", bound=tuple[object, ...])

OWN_SAMPLERS = ("tpe", "random", "nsga2", "gp", "qmc")
"""The project's own samplers, so that reading a study file loads none of them."""


def _no_boolean(value: object) -> object:
    """Refuse ``true`` where a number stands, which would be read as 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _ascending(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] <= pair[1]:
        raise ValueError("must be two numbers, the lower one first")
    return pair


def _distinct(values: _Names) -> _Names:
    if len(set(values)) != len(values):
        raise ValueError("must not name anything twice")
    return values


def _budget(value: object) -> str | int | float:
    """The budget as written, once it is known that it can be read."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("must be a share such as 0.5% or a number of parameters")
    try:
        ParameterBudget.parse(value)
    except SearchSpaceError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return value


def _betas(value: object) -> object:
    """Two numbers from 0 that are below 1."""
    pair = value if isinstance(value, list | tuple) else ()
    if len(pair) != 2 or not all(_is_number(beta) and 0 <= beta < 1 for beta in pair):
        raise ValueError("must be two numbers from 0 to below 1, such as [0.9, 0.98]")
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


def published_methods(value: object) -> str | tuple[str, ...]:
    """``"compared"``, ``"all"``, ``"none"``, or a list of published methods and points such as ``lora_qv:r=8``."""
    if isinstance(value, str) and value in ("compared", "all", "none"):
        return value
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("must be compared, all, none, or a list of published methods")
    return _distinct(tuple(_point(text) for text in value))


def _point(text: str) -> str:
    _choice(text.partition(":")[0].strip(), [method.name for method in PUBLISHED])
    try:
        parse_point(text)
    except SearchSpaceError as error:
        raise ValueError(str(error).rstrip(".")) from error
    return text


def _choice(value: str, known: Sequence[str]) -> str:
    if value not in known:
        near = difflib.get_close_matches(value, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"must be among {', '.join(known)}; got {value!r}{hint}")
    return value


def _metric_name(value: str) -> str:
    known = [each.name for each in METRICS]
    known += [each.name for each in TEXT_METRICS] + [each.name for each in LOSS_METRICS]
    return _choice(value, known)


def _preset_name(value: str) -> str:
    return _choice(value, [preset.name for preset in PRESETS])


def _split_name(value: object) -> object:
    """The name of a split, or group and name of each split that it is joined from."""
    names = value.items() if isinstance(value, Mapping) else [("all", value)]
    if not names or not all(isinstance(text, str) and text for pair in names for text in pair):
        raise ValueError("must be the name of a split, or a mapping from groups to names of splits")
    return value


def _group_values(value: object) -> tuple[str, ...]:
    """Values of a column as text; one stands for a list of one."""
    values = value if isinstance(value, list | tuple) else [value]
    if not values or not all(isinstance(each, str | int) for each in values):
        raise ValueError("must be a list of texts, whole numbers or true and false")
    return tuple(str(each).lower() if isinstance(each, bool) else str(each) for each in values)


def _form_name(value: str) -> str:
    return _choice(value, SEARCHED_FORMS)


def _rated_form(value: str) -> str:
    return _choice(value, list(FORMS))


def _gate_name(value: str) -> str:
    return _choice(value, SEARCHED_GATES)


def _sampler_name(value: str) -> str:
    if value in OWN_SAMPLERS:
        return value
    from studies.search.samplers import SAMPLERS  # loads optuna

    return _choice(value, tuple(SAMPLERS))


def _split_once(value: object) -> object:
    """One column name stands for a list of one."""
    return [value] if isinstance(value, str) else value


Whole = Annotated[int, BeforeValidator(_no_boolean)]
Size = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, BeforeValidator(_no_boolean), Field(allow_inf_nan=False)]
Positive = Annotated[Number, Field(gt=0)]
Text = Annotated[str, StringConstraints(min_length=1)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
Range = Annotated[tuple[Positive, Positive], AfterValidator(_ascending)]
Betas = Annotated[tuple[float, float], BeforeValidator(_betas)]
Budget = Annotated[str | int | float, BeforeValidator(_budget)]
Duration = Annotated[float | None, BeforeValidator(_duration)]
Columns = Annotated[tuple[Text, ...], BeforeValidator(_split_once), Field(min_length=1, max_length=2)]
MetricName = Annotated[str, AfterValidator(_metric_name)]
PresetName = Annotated[str, AfterValidator(_preset_name)]
SplitName = Annotated[str | dict[str, str], BeforeValidator(_split_name)]
GroupValues = Annotated[tuple[str, ...], BeforeValidator(_group_values)]
SamplerName = Annotated[str, AfterValidator(_sampler_name)]
FormName = Annotated[str, AfterValidator(_form_name)]
RatedForm = Annotated[str, AfterValidator(_rated_form)]
GateName = Annotated[str, AfterValidator(_gate_name)]
Distinct = AfterValidator(_distinct)
