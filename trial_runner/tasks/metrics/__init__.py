"""Metrics by name. Libraries that compute them are imported at first use.

Every metric keeps the scale of its library: BLEU, chrF and TER in percent, the others in [0, 1]. METEOR is left out: it
needs WordNet or Java, which no maintained package includes.
"""

from search_space.registry import Registry
from trial_runner.tasks.metrics import answers, classes, corpus, loss, numbers, rouge
from trial_runner.tasks.metrics.metric import Measures, Metric

METRICS: Registry[Metric] = Registry(
    "metric",
    {metric.name: metric for module in (classes, corpus, rouge, answers, loss, numbers) for metric in module.OWN},
    kind=Metric,
    group="deltaspace.metrics",
)

__all__ = ["METRICS", "Measures", "Metric"]
