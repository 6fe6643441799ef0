"""Tasks: classification, and tasks whose answer is a text. Importing this loads neither torch nor any metric's library.

===================  ==========================================================
``source``           where text and labels come from, as a value
``text_source``      where sources and targets come from, and how to generate
``place``            what both have in common; ``groups`` of examples
``docstrings``       the embedded task
``folder``           local files
``hub``              datasets of the hub
``columns``          columns by name or path
``rows``             rows as they were read: ``raw``, ``text_raw``
``linearise``        triples as text; ``questions`` in conversations
``labels``           class indices
``text_rows``        rows of texts before they are tokenised
``splitting``        missing splits, text in two splits, smaller splits
``encode``           tokens; ``text_encode`` for models that generate
``split``            tokenised splits and batches; ``text_split`` of texts
``cache``            prepared tasks on disk
``prepare``          all of these in their order: ``classification``,
                     ``generation``
``metrics``          accuracy, F1, Matthews
``text_metrics``     BLEU, chrF, TER, ROUGE, exact match, token F1, perplexity;
                     ``answers`` to questions
===================  ==========================================================
"""

from trial_runner.tasks.cache import default_cache_folder
from trial_runner.tasks.classification.metrics import METRICS, Metric, compute, metric
from trial_runner.tasks.classification.source import EMBEDDED_TASKS, TaskSource
from trial_runner.tasks.classification.split import Batch, PreparedTask, Split
from trial_runner.tasks.data.groups import Grouping
from trial_runner.tasks.data.place import SPLITS, SourceKind
from trial_runner.tasks.generation.metrics import (
    PROXY_LOSS,
    TEXT_KINDS,
    TextKind,
    compute_loss,
    compute_text,
    metrics_of_kind,
    score_of,
    signature,
)
from trial_runner.tasks.generation.source import Decoding, EarlyMetric, QuestionColumns, TextColumns, TextTaskSource
from trial_runner.tasks.generation.split import IGNORED, PreparedTextTask, Prompts, TextBatch, TextSplit
from trial_runner.tasks.prepare import prepare_task

__all__ = [
    "EMBEDDED_TASKS",
    "IGNORED",
    "METRICS",
    "PROXY_LOSS",
    "SPLITS",
    "TEXT_KINDS",
    "Batch",
    "Decoding",
    "EarlyMetric",
    "Grouping",
    "Metric",
    "PreparedTask",
    "PreparedTextTask",
    "Prompts",
    "QuestionColumns",
    "SourceKind",
    "Split",
    "TaskSource",
    "TextBatch",
    "TextColumns",
    "TextKind",
    "TextSplit",
    "TextTaskSource",
    "compute",
    "compute_loss",
    "compute_text",
    "default_cache_folder",
    "metric",
    "metrics_of_kind",
    "prepare_task",
    "score_of",
    "signature",
]
