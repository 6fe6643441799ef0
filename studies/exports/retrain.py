"""One trial trained from scratch to its last step, as the study would have done it, without the ledger."""

import os
from collections.abc import Callable

from studies.backends.backend import RunnerFactory, TorchRunnerFactory
from studies.errors import StudiesError
from studies.records import NewTrial
from studies.search.candidates import trial_request
from studies.study_file import Specification
from trial_runner.requests import Failure, PackRunner, Reading, Snapshot, TrainingPlan


def retrain(
    specification: Specification, trial: NewTrial, tell: Callable[[Reading], None]
) -> tuple[tuple[Reading, ...], Snapshot]:
    """Train a trial from scratch with its seed and the settings of its study. Nothing is recorded.

    Args:
        tell: Called with every measurement.

    Returns:
        The readings, by step, and what is left at the last one.

    Raises:
        StudiesError: If the trial fails.
        RunnerError: If the backbone or the task cannot be had.
    """
    return trained_anew(runner_of(specification), trial, specification.training_plan(), tell)


def runner_of(specification: Specification, factory: RunnerFactory | None = None) -> PackRunner:
    """What trains the trials of a study here, on all cores.

    Args:
        factory: Makes it; None trains the study's task on its backbone.

    Raises:
        RunnerError: If the backbone or the task cannot be had.
    """
    return (factory or TorchRunnerFactory.of(specification))(len(os.sched_getaffinity(0)))


def trained_anew(
    runner: PackRunner, trial: NewTrial, plan: TrainingPlan, tell: Callable[[Reading], None]
) -> tuple[tuple[Reading, ...], Snapshot]:
    """Train a trial alone from scratch; see `retrain`."""
    pack = runner.open_pack(1)
    slot = pack.admit(trial_request(trial, attempt=1, plan=plan))
    readings: list[Reading] = []
    done = 0
    for step in plan.evaluate_at_steps:
        for result in pack.advance(step - done):
            if isinstance(result, Failure):
                raise StudiesError(f"trial {trial.number} must reach its last step; it failed: {result.reason}.")
            tell(result)
            readings.append(result)
        done = step
    return tuple(readings), pack.snapshot(slot)
