"""Consistency of pruning: each decision at a rung against the readings that were recorded before it.

Everything follows from those readings in the order of their times.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from studies.history.history import StudyHistory
from studies.pruning.degenerate import has_collapsed
from studies.pruning.rungs import RungPlan, stop_reason
from studies.records import Reading, TrialRecord, TrialReport, TrialState


def pruning_differences(
    trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]], plan: RungPlan
) -> Iterator[str]:
    """Yield one line for each trial of a search that was pruned, or not, against the rule.

    Args:
        trials: All trials, in the order of their numbers.
        readings: Readings by trial number, in the order of their steps, each with its time.
        plan: Rungs of the study, with the loss of guessing; without ``stops_collapsed`` no collapse is decided again.
    """
    history = StudyHistory.of(trials, {})
    arrived = [one for of_trial in readings.values() for one in of_trial]
    if not all(math.isfinite(one.metrics.get("validation_loss", 0)) for one in arrived):
        plan = replace(plan, stops_collapsed=False)  # infinity was recorded as NaN
    for reading in sorted(arrived, key=attrgetter("heard_at", "trial", "step")):
        history = history.reported(TrialReport(trial=reading.trial, attempt=reading.attempt, reading=reading))
        trial = history[reading.trial]
        is_last = reading.step == readings[reading.trial][-1].step
        if trial.replicate_of is not None or (is_last and trial.state is TrialState.FAILED):
            continue
        found = trial.reason if is_last and trial.state is TrialState.PRUNED else None
        if has_collapsed(found) and not plan.stops_collapsed:
            continue
        expected = stop_reason(plan, history, reading)
        if expected != found:
            yield (
                f"trial {trial.number}: after the reading of step {reading.step} it must "
                f"{'go on' if expected is None else f'be pruned, {expected}'}; got {found or trial.state.value}"
            )
