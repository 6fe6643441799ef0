"""Metrics, each one object of a name. What computes it is imported when it is first computed.

Every metric keeps the scale of its library: BLEU, chrF and TER in percent, the others in [0, 1]. METEOR is left out: it
needs WordNet or Java, which no maintained package brings along.
"""

from search_space.registry import Registry
from trial_runner.tasks.metrics.answers import EXACT_MATCH, TOKEN_F1
from trial_runner.tasks.metrics.classes import ACCURACY, F1, MATTHEWS
from trial_runner.tasks.metrics.corpus import BLEU, CHRF, TER
from trial_runner.tasks.metrics.loss import LOSS, PERPLEXITY
from trial_runner.tasks.metrics.metric import Measures, Metric
from trial_runner.tasks.metrics.numbers import PEARSON, SPEARMAN, SQUARED_ERROR
from trial_runner.tasks.metrics.rouge import ROUGE1, ROUGE2, ROUGE_L, ROUGE_LSUM

_OWN = (
    ACCURACY,
    F1,
    MATTHEWS,
    BLEU,
    CHRF,
    TER,
    ROUGE1,
    ROUGE2,
    ROUGE_L,
    ROUGE_LSUM,
    EXACT_MATCH,
    TOKEN_F1,
    LOSS,
    PERPLEXITY,
    PEARSON,
    SPEARMAN,
    SQUARED_ERROR,
)

METRICS: Registry[Metric] = Registry(
    "metric", {metric.name: metric for metric in _OWN}, kind=Metric, group="deltaspace.metrics"
)

__all__ = ["METRICS", "Measures", "Metric"]
