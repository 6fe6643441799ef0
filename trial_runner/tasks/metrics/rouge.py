"""ROUGE, from rouge-score: mean F1 over the texts, each against its best reference.

Words are stemmed, as in the field's scripts. For rougeLsum each line is a sentence.
"""

from trial_runner.tasks.metrics.metric import Measures, Metric, References, Texts


def _metric(name: str) -> Metric:
    def compute(texts: Texts, references: References) -> float:
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer([name], use_stemmer=True)
        pairs = zip(references, texts, strict=True)
        return sum(float(scorer.score_multi(list(each), text)[name].fmeasure) for each, text in pairs) / len(texts)

    kinds = ("summarisation", "data_to_text", "instruction")
    return Metric(name=name, kinds=kinds, measures=Measures.TEXTS, compute=compute)


OWN = tuple(map(_metric, ("rouge1", "rouge2", "rougeL", "rougeLsum")))
