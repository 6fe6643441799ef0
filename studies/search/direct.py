"""A search that is asked directly: it makes whole candidates from all that is known of the trials before.

Samplers of Optuna see parameters and values. A direct search sees configurations, every reading with how sure it is,
and how far a trial goes; so it is asked for candidates itself, and Optuna is told what was found.
"""

from collections.abc import Sequence
from typing import Protocol

from search_space.space.space import Candidate
from studies.search.factored.observation import Observation

MAX_DRAWS = 16
"""How often a search that draws nothing new is asked again, each time with another seed."""


class AskedSearch(Protocol):
    """Proposes candidates; what it proposes depends on its seed and on the arguments only."""

    def candidate(self, history: Sequence[Observation], *, number: int, retry: int = 0) -> Candidate | None:
        """One that was not tried before; None if nothing new was drawn."""
        ...

    def published(
        self, history: Sequence[Observation], method: str, *, number: int, retry: int = 0
    ) -> Candidate | None:
        """A published method at rates that were not tried before; None if all that were drawn had been."""
        ...


def asked(search: AskedSearch, trials: Sequence[Observation], method: str | None) -> Candidate | None:
    """A candidate for the trial after some others; None if all that were drawn had been tried.

    Args:
        search: Who is asked.
        trials: All before, in the order of their numbers.
        method: The published method that it is to be; None for whatever promises most.

    Raises:
        BudgetError: If the method does not fit.
        InvalidEditError: If it is not valid on the backbone.
    """
    number = len(trials)
    for retry in range(MAX_DRAWS):
        if method is None:
            candidate = search.candidate(trials, number=number, retry=retry)
        else:
            candidate = search.published(trials, method, number=number, retry=retry)
        if candidate is not None:
            return candidate
    return None
