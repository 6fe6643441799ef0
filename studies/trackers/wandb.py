"""Weights & Biases tracker: a run per trial in the project ``deltaspace``, grouped by study.

``WANDB_MODE=offline`` writes below ``./wandb`` alone; ``WANDB_PROJECT`` sets another project.
"""

import os
from typing import Any

from studies.records import Reading, StudyRecord, TrialRecord
from studies.trackers.facts import facts_of, measured, needed, run_name


class WeightsAndBiases:
    """Tracker with one run per trial, several at a time."""

    def __init__(self) -> None:
        """Import the package."""
        self._package = needed("wandb")
        self._project = os.environ.get("WANDB_PROJECT", "deltaspace")
        self._runs: dict[int, Any] = {}

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Begin a run with the facts of the trial."""
        self._runs[trial.number] = self._package.init(
            project=self._project,
            group=study.name,
            name=run_name(trial),
            config=facts_of(study, trial),
            reinit="create_new",
        )

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """Log a point of every curve."""
        self._runs[trial.number].log(measured(reading), step=reading.step)

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """End the run."""
        run = self._runs.pop(trial.number)
        run.summary["state"] = trial.state.value
        if trial.reason is not None:
            run.summary["reason"] = trial.reason
        run.finish(exit_code=0)

    def launch_ended(self, study: StudyRecord) -> None:
        """Close all runs."""
        for run in self._runs.values():
            run.finish(exit_code=0)
        self._runs = {}
