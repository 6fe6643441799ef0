"""Corpus-level BLEU, chrF and TER in percent, from sacrebleu."""

import math
from itertools import zip_longest

from trial_runner.tasks.metrics.metric import Measures, Metric, References, Texts


def _metric(name: str, library: str, *, highest: float = 100.0, higher_is_better: bool = True) -> Metric:
    def compute(texts: Texts, references: References) -> float:
        import sacrebleu.metrics

        scorer = getattr(sacrebleu.metrics, library)()
        streams = list(map(list, zip_longest(*references)))  # the first reference of every text, the second, …
        return float(scorer.corpus_score(list(texts), streams).score)

    return Metric(
        name=name,
        kinds=("translation", "data_to_text"),
        measures=Measures.TEXTS,
        compute=compute,
        higher_is_better=higher_is_better,
        bounds=(0.0, highest),
    )


BLEU = _metric("bleu", "BLEU")
CHRF = _metric("chrf", "CHRF")
TER = _metric("ter", "TER", highest=math.inf, higher_is_better=False)
OWN = (BLEU, CHRF, TER)
