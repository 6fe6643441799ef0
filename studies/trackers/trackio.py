"""trackio tracker: a run per trial in a project of the study's name, below ``$TRACKIO_DIR``.

One run can be open at a time, so a trial is written when it ends.
"""

from typing import Any

from studies.records import Reading, StudyRecord, TrialRecord
from studies.trackers.facts import facts_of, measured, needed, run_name


class Trackio:
    """Tracker with one run per trial, written at its end."""

    def __init__(self) -> None:
        """Import the package."""
        self._package: Any = needed("trackio")
        self._readings: dict[int, list[Reading]] = {}

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Begin to collect readings."""
        self._readings[trial.number] = []

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """Collect a reading."""
        self._readings[trial.number].append(reading)

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Write the run."""
        config = {**facts_of(study, trial), "state": trial.state.value}
        self._package.init(project=study.name, name=run_name(trial), group=study.name, config=config)
        for reading in self._readings.pop(trial.number):
            self._package.log(measured(reading), step=reading.step)
        self._package.finish()

    def launch_ended(self, study: StudyRecord) -> None:
        """Drop unfinished trials, which a later launch writes."""
        self._readings = {}
