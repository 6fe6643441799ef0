"""Accuracy, F1 and Matthews correlation, equal to scikit-learn's without its second of import time."""

import numpy as np
import numpy.typing as npt

from trial_runner.tasks.metrics.metric import Measures, Metric

Classes = npt.NDArray[np.int64]


def _accuracy(predictions: Classes, labels: Classes, classes: int) -> float:
    return float(np.mean(predictions == labels))


def _f1(predictions: Classes, labels: Classes, classes: int) -> float:
    """Return the F1 of class 1 of two classes; of more, the mean over the classes that occur in either argument."""
    right, predicted, true = _counts(predictions, labels, classes)
    counted = np.array([1]) if classes == 2 else np.flatnonzero(predicted + true)
    occurring = np.maximum(predicted + true, 1)  # a class that never occurs has no true positive either
    return float(np.mean((2 * right / occurring)[counted]))


def _matthews(predictions: Classes, labels: Classes, classes: int) -> float:
    """Return the Matthews correlation in [-1, 1] (Gorodkin 2004); 0 where one of the arguments is constant."""
    right, predicted, true = _counts(predictions, labels, classes)
    total = len(labels)
    together = float(right.sum() * total - true @ predicted)
    spread = float(total**2 - predicted @ predicted) * float(total**2 - true @ true)
    return together / float(np.sqrt(spread)) if spread else 0.0


def _counts(predictions: Classes, labels: Classes, classes: int) -> tuple[Classes, Classes, Classes]:
    """Return the numbers of correct predictions, of predictions and of labels per class, each ``(classes,)``."""
    right = np.bincount(labels[predictions == labels], minlength=classes)
    return right, np.bincount(predictions, minlength=classes), np.bincount(labels, minlength=classes)


_KINDS = ("classification",)

ACCURACY = Metric(name="accuracy", kinds=_KINDS, measures=Measures.CLASSES, compute=_accuracy)
F1 = Metric(name="f1", kinds=_KINDS, measures=Measures.CLASSES, compute=_f1)
MATTHEWS = Metric(name="matthews", kinds=_KINDS, measures=Measures.CLASSES, compute=_matthews, bounds=(-1.0, 1.0))
OWN = (ACCURACY, F1, MATTHEWS)
