"""The metrics of classification tasks. scikit-learn is imported when one is computed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trial_runner.errors import TaskError
from trial_runner.tasks.data.groups import rows_by_group
from trial_runner.tasks.data.names import nearest

Classes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measure of predicted classes against true ones; higher is better.

    Attributes:
        name: As written in a study file.
        measure: From predictions ``(B,)``, labels ``(B,)`` and the number of classes of the task.
    """

    name: str
    measure: Callable[[Classes, Classes, int], float]


def _accuracy(predictions: Classes, labels: Classes, classes: int) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(labels, predictions))


def _f1(predictions: Classes, labels: Classes, classes: int) -> float:
    """F1 of the last of two classes; of more, the mean over the classes that occur in either argument."""
    from sklearn.metrics import f1_score

    counted = [1] if classes == 2 else None
    return float(f1_score(labels, predictions, labels=counted, average="macro", zero_division=0))


def _matthews(predictions: Classes, labels: Classes, classes: int) -> float:
    """Matthews correlation in [-1, 1]; 0 where one of the arguments is constant."""
    from sklearn.metrics import matthews_corrcoef

    if len(np.union1d(predictions, labels)) < 2:
        return 0.0  # scikit-learn says so too, but warns
    return float(matthews_corrcoef(labels, predictions))


METRICS: tuple[Metric, ...] = (
    Metric(name="accuracy", measure=_accuracy),
    Metric(name="f1", measure=_f1),
    Metric(name="matthews", measure=_matthews),
)


def metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        TaskError: If there is none.
    """
    for each in METRICS:
        if each.name == name:
            return each
    known = [each.name for each in METRICS]
    raise TaskError(f"no metric {name!r}; known: {', '.join(known)}.{nearest(name, known)}")


def compute(
    names: Iterable[str], predictions: Any, labels: Any, *, classes: int, groups: Sequence[str] | None = None
) -> dict[str, float]:
    """Measure predictions by several metrics.

    Args:
        names: Of the metrics.
        predictions: Predicted class per example, ``(B,)``.
        labels: True class per example, ``(B,)``.
        classes: Number of classes of the task; two of them make F1 that of the last class.
        groups: Of each example; every group is measured on its own too, as ``accuracy_matched``.

    Raises:
        TaskError: If there is no metric of a name, or if the arguments are empty or of unequal length.
    """
    predicted, true = np.asarray(predictions, dtype=np.int64), np.asarray(labels, dtype=np.int64)
    if predicted.shape != true.shape or not len(true):
        raise TaskError(
            f"metrics need as many predictions as labels, at least one; got {predicted.shape} and {true.shape}."
        )
    chosen = [metric(name) for name in names]
    measured = {each.name: each.measure(predicted, true, classes) for each in chosen}
    for group, rows in rows_by_group(groups or ()).items():
        measured |= {f"{each.name}_{group}": each.measure(predicted[rows], true[rows], classes) for each in chosen}
    return measured
