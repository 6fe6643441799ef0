"""A rule of pruning for tests that needs neither noise nor a model: the best of a rung go on, one in `reduction`."""

from dataclasses import dataclass

from studies.history.history import StudyHistory
from studies.pruning.rungs import RungPlan, readings_at
from trial_runner.requests import Reading


@dataclass(frozen=True)
class BestShare:
    reduction: int = 2

    def __call__(self, plan: RungPlan, history: StudyHistory, reading: Reading) -> str | None:
        ranked = sorted(readings_at(history, reading.step).values(), key=lambda one: (-one.score, one.trial))
        kept = len(ranked) // self.reduction
        if kept == 0 or any(one.trial == reading.trial for one in ranked[:kept]):
            return None
        return f"{reading.score:.4g} below the cut {ranked[kept - 1].score:.4g}"
