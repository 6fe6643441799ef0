"""Metrics of answers given reference answers: exact match and token F1 (Rajpurkar et al. 2016, SQuAD)."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from trial_runner.tasks.metrics.metric import Measures, Metric, References, Texts

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise_answer(text: str) -> str:
    """Convert a text to lower case and remove punctuation, then articles, then repeated white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if the answer equals one of the references after normalisation, else 0."""
    return float(any(normalise_answer(prediction) == normalise_answer(reference) for reference in references))


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the largest F1 of the answer's words against those of a reference, in [0, 1]."""
    return max(_f1(normalise_answer(prediction).split(), normalise_answer(each).split()) for each in references)


def _f1(predicted: list[str], true: list[str]) -> float:
    """Return the F1 of two bags of words; if one is empty, 1 if both are, else 0."""
    if not predicted or not true:
        return float(predicted == true)
    common = (Counter(predicted) & Counter(true)).total()
    return 2 * common / (len(predicted) + len(true))


def _metric(name: str, measure: Callable[[str, Sequence[str]], float]) -> Metric:
    """Build the metric that is the mean of a measure over the texts."""

    def compute(texts: Texts, references: References) -> float:
        return sum(measure(text, each) for text, each in zip(texts, references, strict=True)) / len(texts)

    kinds = ("question_answering", "instruction")
    return Metric(name=name, kinds=kinds, measures=Measures.TEXTS, compute=compute, is_of_answers=True)


EXACT_MATCH = _metric("exact_match", exact_match)
TOKEN_F1 = _metric("token_f1", token_f1)
OWN = (EXACT_MATCH, TOKEN_F1)
