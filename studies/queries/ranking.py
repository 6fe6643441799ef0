"""In which order trials stand, and which is the best."""

from collections.abc import Iterable

from studies.store.records import TrialRecord, TrialState


def rank(trial: TrialRecord) -> tuple[int, int, float, int]:
    """Complete by score, then pruned by steps and score, then failed; the earlier of equals first."""
    if trial.state is TrialState.COMPLETE and trial.score is not None:
        return 0, 0, -trial.score, trial.number
    newest = -trial.last_score if trial.last_score is not None else float("inf")
    return (1 if trial.state is TrialState.PRUNED else 2), -trial.steps, newest, trial.number


def best_trial(trials: Iterable[TrialRecord]) -> TrialRecord | None:
    """The complete trial with the highest score, the earliest of equals; None before one is complete."""
    complete = (trial for trial in trials if trial.state is TrialState.COMPLETE)
    return min(complete, key=rank, default=None)
