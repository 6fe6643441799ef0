"""Measurement of predictions by metrics of `trial_runner.tasks.metrics`, on all examples and on each group of them."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from search_space.closest_name import name_hint
from trial_runner.errors import TaskError
from trial_runner.tasks.metrics import METRICS, Measures, Metric
from trial_runner.tasks.metrics.metric import References, Texts
from trial_runner.tasks.task import rows_by_group

SAME_PREDICTION = "same_prediction"
"""Measured share of the examples with the most frequent prediction: 1 is a constant prediction."""

PROXY_LOSS = "proxy_loss"
"""Name of the loss in a measurement that is scored by it in place of the task's metric."""


def metrics_of(kind: str, usual: str) -> tuple[str, ...]:
    """Return the names of the metrics of a kind of task, the usual one first, those of the loss last.

    Raises:
        TaskError: If the usual one is not for the kind.
    """
    known = [metric for metric in METRICS.values() if kind in metric.kinds]
    if usual not in {metric.name for metric in known}:
        raise TaskError(f"the usual metric of a kind must be for it; {usual} is not for {kind}. Add it to its kinds.")
    known.sort(key=lambda metric: (metric.name != usual, metric.measures is Measures.LOSS))
    return tuple(metric.name for metric in known)


def score_of(name: str, value: float) -> float:
    """Return the score to maximise: a metric's value, negated if lower is better (TER, loss, perplexity)."""
    metric = METRICS.get(name)
    return value if metric is None else metric.score(value)


def compute(
    names: Iterable[str], predictions: Any, labels: Any, *, classes: int | None, groups: Sequence[str] | None = None
) -> dict[str, float]:
    """Measure predicted classes, or numbers, by several metrics.

    Args:
        names: Names of the metrics.
        predictions: Predicted class or number per example, ``(B,)``.
        labels: True class or number per example, ``(B,)``.
        classes: Number of classes of the task; with two, F1 is that of the last class. None for numbers.
        groups: Group of each example; every group is measured on its own too, as ``accuracy_matched``.

    Raises:
        TaskError: If there is no metric of a name, or if the arguments are empty or of unequal length.
    """
    predicted, true = _checked(predictions, labels, np.float64 if classes is None else np.int64)
    kind, of_what = (Measures.NUMBERS, " of numbers") if classes is None else (Measures.CLASSES, "")
    chosen, more = _chosen(names, of_what, kind), () if classes is None else (classes,)
    return _measured(chosen, lambda each, rows: each.compute(predicted[rows], true[rows], *more), len(true), groups)


def compute_loss(names: Iterable[str], loss: float) -> dict[str, float]:
    """Return the values of those of the metrics that are functions of the loss."""
    return {name: METRICS[name].compute(loss) for name in names if METRICS[name].measures is Measures.LOSS}


def compute_text(
    names: Iterable[str],
    predictions: Texts,
    references: References,
    *,
    groups: Sequence[str] | None = None,
    answer_after: str | None = None,
) -> dict[str, float]:
    """Measure generated texts by several metrics.

    Args:
        names: Names of the metrics; those of the loss are left out.
        predictions: Text for each of the B examples; it may be empty.
        references: References of each example, at least one.
        groups: Group of each example; every group is measured on its own too, as ``bleu_seen``.
        answer_after: Mark before the answer proper, for metrics of answers; None if the whole text is the answer.

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
    chosen = _chosen(names, " of texts", Measures.TEXTS, Measures.LOSS)
    answers = [answer_of(text, answer_after) for text in predictions]
    right = [[answer_of(text, answer_after, is_reference=True) for text in some] for some in references]

    def measure(metric: Metric, rows: list[int]) -> float:
        texts, known = (answers, right) if metric.is_of_answers else (predictions, references)
        return metric.compute([texts[row] for row in rows], [known[row] for row in rows])

    return _measured([each for each in chosen if each.needs_generation], measure, len(references), groups)


def answer_of(text: str, answer_after: str | None, *, is_reference: bool = False) -> str:
    """Return the rest of the line after the last mark of an answer in a text.

    Args:
        text: Text.
        answer_after: Mark; None takes the whole text.
        is_reference: Whether a text without the mark is the answer itself; a generated text without it has none.
    """
    if answer_after is None:
        return text
    _, mark, answer = text.rpartition(answer_after)
    if not mark:
        return text if is_reference else ""
    return next(iter(answer.strip().splitlines()), "")


def same_prediction(predictions: Iterable[Hashable]) -> dict[str, float]:
    """Measure the share of the most frequent prediction; there must be at least one."""
    counts = Counter(predictions)
    return {SAME_PREDICTION: max(counts.values()) / counts.total()}


def _checked(predictions: Any, labels: Any, dtype: npt.DTypeLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    predicted: npt.NDArray[Any] = np.asarray(predictions, dtype=dtype)
    true: npt.NDArray[Any] = np.asarray(labels, dtype=dtype)
    if predicted.shape != true.shape or not len(true):
        raise TaskError(
            f"metrics need as many predictions as labels, at least one; got {predicted.shape} and {true.shape}."
        )
    return predicted, true


def _chosen(names: Iterable[str], of_what: str, *measures: Measures) -> list[Metric]:
    known = {name: metric for name, metric in METRICS.items() if metric.measures in measures}
    chosen = []
    for name in names:
        if name not in known:
            raise TaskError(f"no metric {name!r}{of_what}; known: {', '.join(known)}.{name_hint(name, known)}")
        chosen.append(known[name])
    return chosen


def _measured(
    chosen: Sequence[Metric],
    measure: Callable[[Metric, list[int]], float],
    count: int,
    groups: Sequence[str] | None,
) -> dict[str, float]:
    """Return each metric on all rows, then on those of each group."""
    measured = {each.name: measure(each, list(range(count))) for each in chosen}
    for group, rows in rows_by_group(groups or ()).items():
        measured |= {f"{each.name}_{group}": measure(each, rows) for each in chosen}
    return measured
