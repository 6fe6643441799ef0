"""What can be set of the factored sampler."""

from dataclasses import dataclass, field

from studies.search.factored.moves import Moves
from studies.search.factored.trends import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class FactoredSettings:
    """Numbers of the proposal.

    Attributes:
        startup: Trials with a reading before the model is asked; until then draws are stratified.
        candidates: How many are compared for a proposal.
        fresh: Share of proposals that are draws without a model.
        rated: Share of proposals that give a published structure other rates.
        decay: Ranks over which the probability to be a parent falls by a factor of e.
        trusts_papers: Whether configurations that the papers would bet on are expected to be better, until trials tell.
        moves: How candidates are made.
        places: Where the rates of some forms are expected to be best, from earlier studies.
    """

    startup: int = 10
    candidates: int = 300
    fresh: float = 0.05
    rated: float = 0.12
    decay: float = 6.0
    trusts_papers: bool = True
    moves: Moves = field(default_factory=Moves)
    places: Places = field(default_factory=dict)
