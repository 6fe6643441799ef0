"""What a ledger tells of the trials of a study, as a keeper has it in memory."""

from collections.abc import Mapping, Sequence

from studies.keeping.plan import StudyPlan
from studies.keeping.roster import OpenTrial
from studies.keeping.tally import Tally
from studies.records import Outcome, ReadingRecord, TrialRecord
from trial_runner.tasks.measuring import PROXY_LOSS


def tally_of(plan: StudyPlan, trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[ReadingRecord]]) -> Tally:
    """All trials that have ended, in the order in which they did.

    Args:
        readings: By number of the trial.
    """
    tally = Tally(plan.training.steps, plan.constant_score)
    for trial in sorted((one for one in trials if one.state.is_terminal), key=_ended_at):
        outcome = Outcome(state=trial.state, score=trial.score, reason=trial.reason)
        tally.add(recalled(trial, readings.get(trial.number, ())), outcome, is_here=False)
    return tally


def recalled(trial: TrialRecord, readings: Sequence[ReadingRecord], losses: int = 0) -> OpenTrial:
    """A trial of the ledger as it last was."""
    return OpenTrial(
        trial=trial,
        attempt=trial.attempt,
        step=trial.steps,
        last_score=trial.last_score,
        is_by_loss=is_by_loss(readings),
        losses=losses,
    )


def is_by_loss(readings: Sequence[ReadingRecord]) -> bool:
    """Whether the newest reading is scored by its loss in place of the metric."""
    return bool(readings) and PROXY_LOSS in readings[-1].metrics


def _ended_at(trial: TrialRecord) -> tuple[float, int]:
    return (0.0 if trial.ended_at is None else trial.ended_at.timestamp()), trial.number
