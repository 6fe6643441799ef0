"""Trackers as observers of a launch: one run per trial, grouped by study. Each needs the package of its name.

``--observe tensorboard``. Each writes to the default place of its package, and is configured by the package's own
environment variables.
"""

TRACKERS = {
    "tensorboard": "studies.trackers.tensorboard:TensorBoard",
    "mlflow": "studies.trackers.mlflow:MLflow",
    "wandb": "studies.trackers.wandb:WeightsAndBiases",
    "trackio": "studies.trackers.trackio:Trackio",
}
"""Classes of the trackers, by the word of ``--observe``."""

PACKAGES = {"tensorboard": "tensorboardX", "mlflow": "mlflow", "wandb": "wandb", "trackio": "trackio"}
"""Packages of the trackers."""
