"""Training of one recorded trial from scratch to its last step, without the ledger."""

import os
from collections.abc import Callable

from studies.backends.backend import TorchRunnerFactory
from studies.errors import StudiesError
from studies.records import TrialRecord
from studies.search.candidates import trial_request
from studies.study_file import Specification
from trial_runner.requests import Failure, Reading, Snapshot


def retrain(
    specification: Specification, trial: TrialRecord, tell: Callable[[Reading], None]
) -> tuple[tuple[Reading, ...], Snapshot]:
    """Train a trial from scratch with its seed and the settings of its study. Nothing is recorded.

    Args:
        specification: Study file.
        trial: Trial to train.
        tell: Function that receives every reading.

    Returns:
        Readings by step, and the snapshot of the last one.

    Raises:
        StudiesError: If the trial fails.
        RunnerError: If the backbone or the task cannot be loaded.
    """
    plan = specification.training_plan()
    pack = TorchRunnerFactory.of(specification)(len(os.sched_getaffinity(0))).open_pack(1)
    pack.admit(trial_request(trial, attempt=1, plan=plan))
    readings: list[Reading] = []
    done = 0
    for step in plan.evaluate_at_steps:
        for result in pack.advance(step - done):
            if isinstance(result, Failure):
                raise StudiesError(f"trial {trial.number} failed before its last step: {result.reason}.")
            tell(result)
            readings.append(result)
        done = step
    return tuple(readings), pack.snapshot(trial.number)
