"""Metrics of predicted numbers: Pearson's and Spearman's correlations, and the mean squared error."""

import math

import numpy as np
import numpy.typing as npt

from trial_runner.tasks.metrics.metric import Measures, Metric

Numbers = npt.NDArray[np.float64]

_KINDS = ("regression",)
_BOUNDS = (-1.0, 1.0)


def _pearson(predictions: Numbers, labels: Numbers) -> float:
    """Return Pearson's correlation; 0 where one of the arguments is constant, NaN where one contains NaN."""
    predicted, true = predictions - predictions.mean(), labels - labels.mean()
    spread = math.sqrt(float(predicted @ predicted)) * math.sqrt(float(true @ true))
    is_constant = np.ptp(predictions) == 0 or np.ptp(labels) == 0  # the mean of equal numbers may have a rounding error
    return 0.0 if is_constant or not spread else float(np.clip(predicted @ true / spread, *_BOUNDS))


def _spearman(predictions: Numbers, labels: Numbers) -> float:
    """Return Spearman's correlation: Pearson's of the ranks, where equal numbers have the mean of theirs."""
    from scipy.stats import rankdata  # type: ignore[import-untyped]

    return _pearson(rankdata(predictions), rankdata(labels))


def _squared_error(predictions: Numbers, labels: Numbers) -> float:
    return float(np.mean((predictions - labels) ** 2))


PEARSON = Metric(name="pearson", kinds=_KINDS, measures=Measures.NUMBERS, compute=_pearson, bounds=_BOUNDS)
SPEARMAN = Metric(name="spearman", kinds=_KINDS, measures=Measures.NUMBERS, compute=_spearman, bounds=_BOUNDS)
SQUARED_ERROR = Metric(
    name="mse",
    kinds=_KINDS,
    measures=Measures.NUMBERS,
    compute=_squared_error,
    higher_is_better=False,
    bounds=(0.0, math.inf),
)
OWN = (PEARSON, SPEARMAN, SQUARED_ERROR)
