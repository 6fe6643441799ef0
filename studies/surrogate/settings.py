"""What can be set of the factored sampler."""

from dataclasses import dataclass, field

from studies.surrogate.mutation import Moves
from studies.surrogate.prior_mean import Places

LONG = 100
"""Trials until which the share of structures never tried stays; later it falls with their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoredSettings:
    """Numbers of the proposal.

    Attributes:
        startup: Trials with a reading before the model is asked; until then draws are stratified.
        candidates: How many are compared for a proposal.
        fresh: Share of proposals that are draws without a model.
        rated: Share of proposals that give a published structure other rates.
        untried: Share of the other proposals that are of a structure never tried; ever less after `LONG` trials.
        most: Trials of one structure, and no less than one in twenty, beyond which others come first.
        decay: Ranks over which the probability to be a parent falls by a factor of e.
        moves: How candidates are made.
        places: Where the rates of some forms are expected to be best, from earlier studies.
    """

    startup: int = 10
    candidates: int = 300
    fresh: float = 0.05
    rated: float = 0.12
    untried: float = 0.25
    most: int = 8
    decay: float = 6.0
    moves: Moves = field(default_factory=Moves)
    places: Places = field(default_factory=dict)

    def untried_at(self, trials: int) -> float:
        """The share of proposals of a structure never tried after some trials."""
        return self.untried * min(1.0, LONG / max(trials, 1))

    def most_at(self, trials: int) -> int:
        """After how many trials of one structure others come first."""
        return max(self.most, trials // 20)
