"""Tasks: from a study file to batches of tokens. Importing this loads no torch and no metric."""

from trial_runner.files import default_cache_folder
from trial_runner.tasks.classification.split import Batch, PreparedTask, Split
from trial_runner.tasks.embedded import EMBEDDED_TASKS, EmbeddedTask
from trial_runner.tasks.evaluation import (
    PROXY_LOSS,
    SAME_PREDICTION,
    compute,
    compute_loss,
    compute_text,
    same_prediction,
    score_of,
)
from trial_runner.tasks.generation.split import IGNORED, PreparedTextTask, TextBatch, TextSplit, WrittenSplit
from trial_runner.tasks.kind import Prepared, TaskKind
from trial_runner.tasks.kinds import TASK_KINDS, check_task, kind_of
from trial_runner.tasks.metrics import METRICS, Metric
from trial_runner.tasks.prepare import prepare_task, prepared_for
from trial_runner.tasks.task import SPLITS, Decoding, Grouping, Task

__all__ = [
    "EMBEDDED_TASKS",
    "IGNORED",
    "METRICS",
    "PROXY_LOSS",
    "SAME_PREDICTION",
    "SPLITS",
    "TASK_KINDS",
    "Batch",
    "Decoding",
    "EmbeddedTask",
    "Grouping",
    "Metric",
    "Prepared",
    "PreparedTask",
    "PreparedTextTask",
    "Split",
    "Task",
    "TaskKind",
    "TextBatch",
    "TextSplit",
    "WrittenSplit",
    "check_task",
    "compute",
    "compute_loss",
    "compute_text",
    "default_cache_folder",
    "kind_of",
    "prepare_task",
    "prepared_for",
    "same_prediction",
    "score_of",
]
