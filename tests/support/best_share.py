"""A rule of pruning for tests that needs neither noise nor a model: the best of a rung go on, one in ``reduction``."""

from dataclasses import dataclass

from studies.pruning.rungs import RecordedScore, RungBoard
from studies.win_probability import WinProbability


@dataclass(frozen=True)
class BestShare:
    def reason(
        self, board: RungBoard, rung: int, reading: RecordedScore, prospect: WinProbability | None
    ) -> str | None:
        ranked = board.no_larger(rung, reading.trial)
        kept = len(ranked) // board.plan.reduction
        if kept == 0 or any(place.trial == reading.trial for place in ranked[:kept]):
            return None
        return f"{reading.score:.4g} below the cut {-ranked[kept - 1].negated:.4g}"
