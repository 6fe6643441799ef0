"""One trial trained from scratch to its last step, as the study would have done it, without the ledger."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.fleet.runners import TorchRunnerFactory
from studies.search.candidates import trial_request
from studies.specification.recorded import recorded_specification
from studies.store.records import ReadingRecord, StudyRecord, TrialRecord
from trial_runner.requests import Failure, PackRunner, Reading, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrained:
    """What came of it.

    Attributes:
        snapshot: Of the last step.
        readings: By step.
    """

    snapshot: Snapshot
    readings: tuple[ReadingRecord, ...]


def retrain(study: StudyRecord, trial: TrialRecord, tell: Callable[[Reading], None]) -> Retrained:
    """Train a trial from scratch with the seed and the settings of its study. Nothing is recorded.

    Args:
        study: Of the trial.
        trial: What to train.
        tell: Called with every measurement.

    Raises:
        StudiesError: If the trial fails.
        RunnerError: If the backbone or the task cannot be had.
    """
    specification = recorded_specification(study)
    order = TorchRunnerFactory(
        backbone=specification.backbone,
        task=specification.to_task_source(),
        precision=specification.training.precision,
    )
    plan = specification.training_plan()
    request = trial_request(
        trial,
        attempt=trial.attempt + 1,
        plan=plan,
        head_learning_rate=specification.training.head_learning_rate,
    )
    runner: PackRunner = order(len(os.sched_getaffinity(0)))
    pack = runner.open_pack(1)
    slot = pack.admit(request)
    readings: list[ReadingRecord] = []
    done = 0
    for step in plan.evaluate_at_steps:
        for result in pack.advance(step - done):
            if isinstance(result, Failure):
                raise StudiesError(f"trial {trial.number} must reach its last step; it failed: {result.reason}.")
            tell(result)
            readings.append(_record(result, request.attempt))
        done = step
    return Retrained(snapshot=pack.snapshot(slot), readings=tuple(readings))


def _record(reading: Reading, attempt: int) -> ReadingRecord:
    return ReadingRecord(
        trial=reading.trial,
        step=reading.step,
        attempt=attempt,
        score=reading.score,
        metrics=reading.metrics,
        train_loss=reading.train_loss,
        seconds=reading.seconds,
        rung=None,
    )
