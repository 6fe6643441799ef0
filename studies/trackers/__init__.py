"""Trackers as observers of a launch: one run per trial, the study as their group. Each needs the package of its name.

``--observe tensorboard``. Every one writes where its package writes by itself, and is set up by the package's
own environment variables.
"""

TRACKERS = {
    "tensorboard": "studies.trackers.tensorboard:TensorBoard",
    "mlflow": "studies.trackers.mlflow:MLflow",
    "wandb": "studies.trackers.wandb:WeightsAndBiases",
    "trackio": "studies.trackers.trackio:Trackio",
}
"""Where each is at home, by the word of ``--observe``."""
