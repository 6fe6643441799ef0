"""The metrics of tasks whose answer is a text, from sacrebleu and rouge-score, which are imported when one is computed.

Every metric keeps the scale of its library: BLEU, chrF and TER in percent, the others in [0, 1]. METEOR is left out: it
needs WordNet or Java, which no maintained package brings along.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trial_runner.errors import TaskError
from trial_runner.tasks.data.groups import rows_by_group
from trial_runner.tasks.data.names import nearest
from trial_runner.tasks.generation.answers import exact_match, token_f1

TextKind = Literal["summarisation", "translation", "data_to_text", "question_answering"]
TEXT_KINDS: tuple[TextKind, ...] = get_args(TextKind)

Texts = Sequence[str]
References = Sequence[Sequence[str]]

PROXY_LOSS = "proxy_loss"
"""A measurement that is scored by its loss in place of the task's metric has the loss under this name, too."""

_ROUGES = ("rouge1", "rouge2", "rougeL", "rougeLsum")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMetric:
    """A measure of generated texts against references.

    Attributes:
        name: As written in a study file.
        kinds: The kinds of task it is for.
        measure: From the texts and the references of each.
        higher_is_better: Whether a better text has a higher value.
    """

    name: str
    kinds: tuple[TextKind, ...]
    measure: Callable[[Texts, References], float]
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LossMetric:
    """A measure of how probable the reference texts are to the model; needs no generation, and lower is better.

    Attributes:
        name: As written in a study file.
        measure: From the mean cross-entropy of a target token, in nats.
    """

    name: str
    measure: Callable[[float], float]


def _streams(references: References) -> list[list[str | None]]:
    """References as sacrebleu takes them: the first of every text, the second, ..."""
    most = max(len(each) for each in references)
    return [[each[place] if place < len(each) else None for each in references] for place in range(most)]


def _sacrebleu(name: str) -> Any:
    import sacrebleu.metrics

    return getattr(sacrebleu.metrics, {"bleu": "BLEU", "chrf": "CHRF", "ter": "TER"}[name])()


def _corpus(name: str) -> Callable[[Texts, References], float]:
    def measure(texts: Texts, references: References) -> float:
        return float(_sacrebleu(name).corpus_score(list(texts), _streams(references)).score)

    return measure


def _rouge(name: str) -> Callable[[Texts, References], float]:
    """Mean F1 over the texts, each against its best reference; words are stemmed, as in the field's scripts.

    Sentences, which only rougeLsum knows, are lines.
    """

    def measure(texts: Texts, references: References) -> float:
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer([name], use_stemmer=True)
        pairs = zip(references, texts, strict=True)
        return sum(float(scorer.score_multi(list(each), text)[name].fmeasure) for each, text in pairs) / len(texts)

    return measure


def _mean(measure: Callable[[str, Sequence[str]], float]) -> Callable[[Texts, References], float]:
    def mean(texts: Texts, references: References) -> float:
        return sum(measure(text, each) for text, each in zip(texts, references, strict=True)) / len(texts)

    return mean


def _perplexity(loss: float) -> float:
    return math.exp(loss) if loss < 700 else math.inf


_TRANSLATED: tuple[TextKind, ...] = ("translation", "data_to_text")

TEXT_METRICS: tuple[TextMetric, ...] = (
    TextMetric(name="bleu", kinds=_TRANSLATED, measure=_corpus("bleu")),
    TextMetric(name="chrf", kinds=_TRANSLATED, measure=_corpus("chrf")),
    TextMetric(name="ter", kinds=_TRANSLATED, measure=_corpus("ter"), higher_is_better=False),
    *(TextMetric(name=name, kinds=("summarisation", "data_to_text"), measure=_rouge(name)) for name in _ROUGES),
    TextMetric(name="exact_match", kinds=("question_answering",), measure=_mean(exact_match)),
    TextMetric(name="token_f1", kinds=("question_answering",), measure=_mean(token_f1)),
)
LOSS_METRICS: tuple[LossMetric, ...] = (
    LossMetric(name="loss", measure=float),
    LossMetric(name="perplexity", measure=_perplexity),
)


def metrics_of_kind(kind: TextKind) -> tuple[str, ...]:
    """Names of the metrics of a kind of task, the usual one first, those of the loss last."""
    usual = {"summarisation": "rouge2", "translation": "bleu", "data_to_text": "bleu", "question_answering": "token_f1"}
    of_texts = [each.name for each in TEXT_METRICS if kind in each.kinds]
    of_texts.sort(key=lambda name: name != usual[kind])
    return (*of_texts, *(each.name for each in LOSS_METRICS))


def text_metric(name: str) -> TextMetric | LossMetric:
    """The metric of that name.

    Raises:
        TaskError: If there is none.
    """
    every: tuple[TextMetric | LossMetric, ...] = (*TEXT_METRICS, *LOSS_METRICS)
    for each in every:
        if each.name == name:
            return each
    known = [each.name for each in every]
    raise TaskError(f"no metric {name!r} of texts; known: {', '.join(known)}.{nearest(name, known)}")


def score_of(name: str, value: float) -> float:
    """The score that a search maximises: a metric's value, negated where lower is better (TER, loss, perplexity).

    Metrics of classification are all better when higher.
    """
    lower = {each.name for each in TEXT_METRICS if not each.higher_is_better} | {each.name for each in LOSS_METRICS}
    return -value if name in lower else value


def compute_loss(names: Iterable[str], loss: float) -> dict[str, float]:
    """The metrics of those names that are of the loss; others are left out."""
    return {each.name: each.measure(loss) for name in names for each in LOSS_METRICS if each.name == name}


def compute_text(
    names: Iterable[str], predictions: Texts, references: References, *, groups: Sequence[str] | None = None
) -> dict[str, float]:
    """Measure generated texts by several metrics.

    Args:
        names: Of the metrics; those of the loss are left out.
        predictions: A text for each of the B examples; it may be empty.
        references: The references of each example, at least one.
        groups: Of each example; every group is measured on its own too, as ``bleu_seen``.

    Raises:
        TaskError: If there is no metric of a name, if the arguments are empty or of unequal length, or if an example
            has no reference.
    """
    if len(predictions) != len(references) or not predictions:
        raise TaskError(
            f"metrics need as many predictions as examples with references, at least one; got {len(predictions)} and "
            f"{len(references)}."
        )
    if not all(references):
        raise TaskError("every example must have a reference; got one with none.")
    chosen = [each for name in names if isinstance(each := text_metric(name), TextMetric)]
    measured = {each.name: each.measure(predictions, references) for each in chosen}
    for group, rows in rows_by_group(groups or ()).items():
        texts, true = [predictions[row] for row in rows], [references[row] for row in rows]
        measured |= {f"{each.name}_{group}": each.measure(texts, true) for each in chosen}
    return measured


def signature(name: str, references: References) -> str:
    """What makes a value of a metric comparable: sacrebleu's signature, or library, version and options."""
    if name in ("bleu", "chrf", "ter"):
        scorer = _sacrebleu(name)
        scorer.corpus_score([""] * len(references), _streams(references))  # it counts the references
        return str(scorer.get_signature())
    if name in _ROUGES:
        from importlib.metadata import version

        return f"{name}|stemmed|best reference|mean F1|rouge-score {version('rouge-score')}"
    return name
