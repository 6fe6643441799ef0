"""MLflow tracker: an experiment per study, a run per trial, at ``$MLFLOW_TRACKING_URI`` or MLflow's default."""

import time
from typing import Any

from studies.records import Reading, StudyRecord, TrialRecord, TrialState
from studies.trackers.facts import facts_of, measured, needed, run_name


class MLflow:
    """Tracker with one run per trial, by MLflow's client."""

    def __init__(self) -> None:
        """Import the package."""
        self._package = needed("mlflow")
        self._client: Any = self._package.MlflowClient()
        self._runs: dict[int, str] = {}

    def trial_began(self, study: StudyRecord, trial: TrialRecord) -> None:
        """Create a run with the facts of the trial."""
        found = self._client.get_experiment_by_name(study.name)
        experiment = self._client.create_experiment(study.name) if found is None else found.experiment_id
        run = self._client.create_run(experiment, run_name=run_name(trial), tags={"study": study.name})
        self._runs[trial.number] = run.info.run_id
        for name, value in facts_of(study, trial).items():
            self._client.log_param(run.info.run_id, name, value)

    def reading(self, study: StudyRecord, trial: TrialRecord, reading: Reading) -> None:
        """Log a point of every curve."""
        for name, value in measured(reading).items():
            self._client.log_metric(self._runs[trial.number], name, value, int(time.time() * 1000), reading.step)

    def trial_ended(self, study: StudyRecord, trial: TrialRecord) -> None:
        """End the run."""
        run = self._runs.pop(trial.number)
        self._client.set_tag(run, "state", trial.state.value)
        if trial.reason is not None:
            self._client.set_tag(run, "reason", trial.reason)
        self._client.set_terminated(run, "FAILED" if trial.state is TrialState.FAILED else "FINISHED")

    def launch_ended(self, study: StudyRecord) -> None:
        """Keep open runs for the next launch."""
        for run in self._runs.values():
            self._client.set_terminated(run, "KILLED")
        self._runs = {}
