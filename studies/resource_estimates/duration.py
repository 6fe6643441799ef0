"""How long a study takes and how much disk it fills, from what a step takes: plain arithmetic."""

from dataclasses import dataclass

from studies.resource_estimates.speed import Speed

_NUMBER_BYTES = 4
_KEPT_NUMBERS = 3
"""Of a trained number in the file of a trial, running or ended: itself and two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What a study has to do.

    Attributes:
        steps: Of a full trial.
        rungs: Measurements of a trial before its last.
        examples: Of the validation split.
        rung_examples: Of them, measured at a rung; None for all.
        workers: That share the trials.
        parameters: Most that a trial trains, its task head among them.
    """

    trials: int
    steps: int
    rungs: int
    examples: int
    workers: int
    parameters: int
    rung_examples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a study.

    Attributes:
        trial_seconds: Of a full trial in its pack.
        most_seconds: Of the study if no trial is pruned; the start of the workers is not in it.
        measuring_share: Of that, what goes into measuring.
        disk_bytes: Of the files of all trials, each as large as the budget allows.
    """

    trial_seconds: float
    most_seconds: float
    measuring_share: float
    disk_bytes: int


def forecast(work: Workload, speed: Speed) -> Forecast:
    """What a study takes if every trial runs to its end."""
    at_rung = work.examples if work.rung_examples is None else min(work.examples, work.rung_examples)
    measuring = work.rungs * at_rung * speed.example_seconds + work.examples * speed.final_example_seconds
    trial = work.steps * speed.step_seconds + measuring
    return Forecast(
        trial_seconds=trial,
        most_seconds=trial * work.trials / work.workers,
        measuring_share=measuring / trial if trial else 0.0,
        disk_bytes=_NUMBER_BYTES * _KEPT_NUMBERS * work.parameters * work.trials,
    )
