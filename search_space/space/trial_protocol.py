"""What proposals are made of: named questions with their values, and the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class SuggestingTrial(Protocol):
    """What proposes values; an ``optuna.Trial`` is one."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number in [low, high]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatRange:
    """A real parameter.

    Attributes:
        low: Least value.
        high: Greatest value.
        log: Whether it is searched on a logarithmic scale.
    """

    low: float
    high: float
    log: bool = False


Parameter = tuple[str, ...] | FloatRange
"""At least two choices, or a range of numbers."""

ParameterSource = SuggestingTrial | Mapping[str, str | float]
"""A trial, or the value of every parameter that will be asked for, by name."""


class ParameterRecorder:
    """Passes questions on, asks nothing where there is one choice, and remembers what was said.

    Args:
        trial: What answers.
        parameters: Those of the space, by name.
    """

    def __init__(self, trial: ParameterSource, parameters: Mapping[str, Parameter]) -> None:
        """Begin with nothing said."""
        self._trial = trial
        self._parameters = parameters
        self.values: dict[str, str | float] = {}

    def choose(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        if len(choices) == 1:
            return choices[0]
        trial = self._trial
        value = str(trial[name]) if isinstance(trial, Mapping) else trial.suggest_categorical(name, choices)
        self.values[name] = value
        return value

    def optional_number(self, name: str) -> float | None:
        """A number of the name's range; None where it is none of the space's, or no value of it is given."""
        is_silent = isinstance(self._trial, Mapping) and name not in self._trial
        return None if is_silent or name not in self._parameters else self.number(name)

    def number(self, name: str) -> float:
        """A number of the name's range; what was said once holds."""
        recorded = self.values.get(name)
        if recorded is not None:
            return float(recorded)
        spread, trial = self._parameters[name], self._trial
        if isinstance(spread, tuple):
            raise TypeError(name)
        low, high = spread.low, spread.high
        if low == high:
            value = low
        elif isinstance(trial, Mapping):
            value = float(trial[name])
        else:
            value = trial.suggest_float(name, low, high, log=spread.log)
        self.values[name] = value
        return value


def is_in_domain(parameter: Parameter, value: str | float) -> bool:
    """Whether a value is one of a parameter."""
    if isinstance(parameter, tuple):
        return value in parameter
    return parameter.low <= float(value) <= parameter.high
