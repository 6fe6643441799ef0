"""What proposals are made of: named questions with their values, and the answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from search_space.space.random_draw import GivenTrial


class SuggestingTrial(Protocol):
    """What proposes values; an ``optuna.Trial`` is one."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number in [low, high]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A categorical parameter.

    Attributes:
        choices: At least two.
    """

    choices: tuple[str, ...]


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


Parameter = Choice | FloatRange


class Recorder:
    """Passes questions on to a trial, asks nothing where there is one choice, and remembers what was said.

    Args:
        trial: What answers.
        parameters: Those of the space, by name.
    """

    def __init__(self, trial: SuggestingTrial, parameters: Mapping[str, Parameter]) -> None:
        """Begin with nothing said."""
        self._trial = trial
        self._parameters = parameters
        self.values: dict[str, str | float] = {}

    def choose(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        if len(choices) == 1:
            return choices[0]
        value = self._trial.suggest_categorical(name, choices)
        self.values[name] = value
        return value

    def number_if_said(self, name: str) -> float | None:
        """A number of the name's range; None where it is none of the space's, or the trial was not given it."""
        is_silent = isinstance(self._trial, GivenTrial) and not self._trial.says(name)
        return None if is_silent or name not in self._parameters else self.number(name)

    def number(self, name: str) -> float:
        """A number of the name's range; what was said once holds."""
        said = self.values.get(name)
        if said is not None:
            return float(said)
        spread = self._parameters[name]
        if isinstance(spread, Choice):
            raise TypeError(name)
        is_open = spread.low < spread.high
        value = self._trial.suggest_float(name, spread.low, spread.high, log=spread.log) if is_open else spread.low
        self.values[name] = value
        return value


def holds(parameter: Parameter, value: str | float) -> bool:
    """Whether a value is one of a parameter."""
    if isinstance(parameter, Choice):
        return value in parameter.choices
    return parameter.low <= float(value) <= parameter.high
