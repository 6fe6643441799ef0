"""Parameters of a search space, and the sources of their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class SuggestingTrial(Protocol):
    """Source of proposed values; an ``optuna.Trial`` is one."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """Return a number in [low, high]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatRange:
    """A real parameter.

    Attributes:
        low: Least value.
        high: Greatest value.
        log: Whether the parameter is searched on a logarithmic scale.
    """

    low: float
    high: float
    log: bool = False


Parameter = tuple[str, ...] | FloatRange
"""At least two choices, or a range of numbers."""

ParameterSource = SuggestingTrial | Mapping[str, str | float]
"""A trial, or the values of all needed parameters by name."""


class ParameterRecorder:
    """Suggests parameters from a source and records their values; single choices are not suggested.

    Args:
        trial: Source of the values.
        parameters: Parameters of the space, by name.
    """

    def __init__(self, trial: ParameterSource, parameters: Mapping[str, Parameter]) -> None:
        """Start without values."""
        self._trial = trial
        self._parameters = parameters
        self.values: dict[str, str | float] = {}

    def choose(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices."""
        if len(choices) == 1:
            return choices[0]
        trial = self._trial
        value = str(trial[name]) if isinstance(trial, Mapping) else trial.suggest_categorical(name, choices)
        self.values[name] = value
        return value

    def optional_number(self, name: str) -> float | None:
        """Return a number of the parameter; None if the space has no such parameter or the source no value."""
        known = self._trial if isinstance(self._trial, Mapping) else getattr(self._trial, "recorded", (name,))
        if name not in self._parameters or name not in known:
            return None
        domain = self._parameters[name]
        return float(self.choose(name, domain)) if isinstance(domain, tuple) else self.number(name)

    def number(self, name: str) -> float:
        """Return a number in the parameter's range; a recorded value is returned again."""
        recorded = self.values.get(name)
        if recorded is not None:
            return float(recorded)
        domain, trial = self._parameters[name], self._trial
        if isinstance(domain, tuple):
            raise TypeError(name)
        low, high = domain.low, domain.high
        if low == high:
            value = low
        elif isinstance(trial, Mapping):
            value = float(trial[name])
        else:
            value = trial.suggest_float(name, low, high, log=domain.log)
        self.values[name] = value
        return value


def is_in_domain(parameter: Parameter, value: str | float) -> bool:
    """Return whether a value belongs to a parameter's domain."""
    if isinstance(parameter, tuple):
        return value in parameter
    return parameter.low <= float(value) <= parameter.high
