"""Loss and perplexity of the reference texts, computed without generation."""

import math

from trial_runner.tasks.metrics.metric import Measures, Metric

_KINDS = ("summarisation", "translation", "data_to_text", "question_answering", "instruction")


def _perplexity(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


LOSS = Metric(
    name="loss",
    kinds=_KINDS,
    measures=Measures.LOSS,
    compute=float,
    higher_is_better=False,
    bounds=(0.0, math.inf),
)
PERPLEXITY = Metric(
    name="perplexity",
    kinds=_KINDS,
    measures=Measures.LOSS,
    compute=_perplexity,
    higher_is_better=False,
    bounds=(1.0, math.inf),
)
OWN = (LOSS, PERPLEXITY)
