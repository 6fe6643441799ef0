"""A trial whose attempts are lost again and again may be what ends workers: it fails, alone."""

from studies.records import Outcome, StudyRecord, TrialState
from studies.store.ledger import Ledger

MAX_LOSSES = 3
"""A trial that is lost so often in a row, without a reading in between, has failed: it may be what kills workers."""


def failure(losses: int, why: str) -> Outcome:
    """How a trial ends that was lost too often."""
    reason = f"lost {losses} times in a row without a reading; the last: {why}"
    return Outcome(state=TrialState.FAILED, reason=reason)


def fail_the_lost(ledger: Ledger, study: StudyRecord, epoch: int) -> list[str]:
    """End the running trials for which the end of the launch that ran them is one loss too many.

    Returns:
        The files that no record names any more.
    """
    before = ledger.losses(study.id)
    dropped: list[str] = []
    for trial in ledger.trials(study.id, states=[TrialState.RUNNING]):
        losses = before.get(trial.number, 0) + 1
        if losses >= MAX_LOSSES:
            outcome = failure(losses, "its launch ended with it")
            dropped += ledger.settle(study.id, epoch, trial.number, trial.attempt, outcome=outcome).dropped_paths
    return dropped
