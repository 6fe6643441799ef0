"""Published methods among the trials of a study, also where the search proposed one itself."""

import re
from collections.abc import Iterable
from typing import Protocol

from search_space.published import METHODS, is_lora_method
from studies.records import RankedTrial

_EQUAL = re.compile(r"\((\w+)\)$")
"""End of the description of a proposal that equals a method but for rates and sizes."""

DISCOVERED = "discovered"
"""Name for the method of a discovery."""


class DescribedTrial(Protocol):
    """Trial with the name of its published method, if it was given as one, and a description."""

    @property
    def method(self) -> str | None:
        """Name of the published method; None for proposals of the search."""

    @property
    def description(self) -> str:
        """Short description."""


def method_of(trial: DescribedTrial) -> str | None:
    """Return the published method that a trial is at any learning rates and sizes; None for a discovery."""
    equal = None if trial.method is not None else _EQUAL.search(trial.description)
    return equal[1] if equal is not None and equal[1] in METHODS else trial.method


def method_name(trial: DescribedTrial) -> str:
    """Return the published method of a trial as in `method_of`, or ``discovered``."""
    return method_of(trial) or DISCOVERED


def is_plain_lora(trial: DescribedTrial) -> bool:
    """Return whether a trial is LoRA at the targets of a published method."""
    return is_lora_method(method_of(trial))


def is_lora(trial: DescribedTrial) -> bool:
    """Return whether all edits of a trial are LoRA, at any targets."""
    return all(edit.startswith("LoRA ") for edit in trial.description.split(" + "))


def first_other_method(trials: Iterable[DescribedTrial], own: str | None) -> str | None:
    """Return the published method of the first trial that is one, but for ``own``; None if there is none."""
    return next((method for method in map(method_of, trials) if method not in (None, own)), None)


def numbered(trial: RankedTrial) -> str:
    """Return a trial as sentences name it: its number, after its published method if it is one."""
    method = method_of(trial)
    return f"trial {trial.number}" if method is None else f"{method} (trial {trial.number})"
