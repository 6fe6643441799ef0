"""BLEU, chrF and TER of all texts together, in percent, from sacrebleu."""

import math

from trial_runner.tasks.metrics.metric import Measures, Metric, References, Texts


def _metric(name: str, library: str, *, highest: float = 100.0, higher_is_better: bool = True) -> Metric:
    def compute(texts: Texts, references: References) -> float:
        import sacrebleu.metrics

        scorer = getattr(sacrebleu.metrics, library)()
        return float(scorer.corpus_score(list(texts), _streams(references)).score)

    return Metric(
        name=name,
        kinds=("translation", "data_to_text"),
        measures=Measures.TEXTS,
        compute=compute,
        higher_is_better=higher_is_better,
        bounds=(0.0, highest),
    )


def _streams(references: References) -> list[list[str | None]]:
    """References as sacrebleu takes them: the first of every text, the second, ..."""
    most = max(len(each) for each in references)
    return [[each[place] if place < len(each) else None for each in references] for place in range(most)]


BLEU = _metric("bleu", "BLEU")
CHRF = _metric("chrf", "CHRF")
TER = _metric("ter", "TER", highest=math.inf, higher_is_better=False)
OWN = (BLEU, CHRF, TER)
