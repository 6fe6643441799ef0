"""Tasks: text and text-pair classification. Importing this loads neither torch, datasets nor scikit-learn.

===============  =============================================================
``source``       where text and labels come from, as a value
``docstrings``   the embedded task
``folder``       local files
``hub``          datasets of the hub
``raw``          rows as they were read
``labels``       class indices
``splitting``    missing splits, smaller splits
``encode``       tokens
``split``        tokenised splits and batches
``cache``        prepared tasks on disk
``prepare``      all of these in their order
``metrics``      accuracy, F1, Matthews
===============  =============================================================
"""

from trial_runner.tasks.cache import default_cache_folder
from trial_runner.tasks.metrics import METRICS, Metric, compute, metric
from trial_runner.tasks.prepare import prepare_task
from trial_runner.tasks.source import EMBEDDED_TASKS, SPLITS, SourceKind, TaskSource
from trial_runner.tasks.split import Batch, PreparedTask, Split

__all__ = [
    "EMBEDDED_TASKS",
    "METRICS",
    "SPLITS",
    "Batch",
    "Metric",
    "PreparedTask",
    "SourceKind",
    "Split",
    "TaskSource",
    "compute",
    "default_cache_folder",
    "metric",
    "prepare_task",
]
