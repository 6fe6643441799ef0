import math
import warnings

import numpy as np
import pytest
import sklearn.metrics

from trial_runner.errors import TaskError
from trial_runner.tasks import METRICS, compute
from trial_runner.tasks.metrics import Measures

NAMES = [metric.name for metric in METRICS.values() if metric.measures is Measures.CLASSES]


def test_binary_metrics_are_those_of_the_confusion_matrix():
    labels = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    predictions = np.array([1, 1, 0, 0, 0, 1, 0, 1])
    true_positive, false_positive, false_negative, true_negative = 3, 1, 1, 3
    matthews = (true_positive * true_negative - false_positive * false_negative) / math.sqrt(4 * 4 * 4 * 4)
    assert compute(NAMES, predictions, labels, classes=2) == pytest.approx(
        {"accuracy": 6 / 8, "f1": 2 * 3 / (2 * 3 + 1 + 1), "matthews": matthews}
    )


def test_f1_of_two_classes_is_that_of_the_last_one():
    labels, predictions = [0, 0, 0, 1], [0, 0, 1, 1]
    assert compute(["f1"], predictions, labels, classes=2)["f1"] == pytest.approx(2 / 3)
    flipped = compute(["f1"], [1 - p for p in predictions], [1 - y for y in labels], classes=2)
    assert flipped["f1"] == pytest.approx(4 / 5)


@pytest.mark.parametrize("classes", [2, 3, 5, 8])
@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_digit_by_digit_those_of_scikit_learn(classes, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, 301)
    predictions = np.where(generator.random(301) < 0.4, labels, generator.integers(0, max(2, classes - 1), 301))
    counted = [1] if classes == 2 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f1 = sklearn.metrics.f1_score(labels, predictions, labels=counted, average="macro", zero_division=0)
    assert compute(NAMES, predictions, labels, classes=classes) == {
        "accuracy": sklearn.metrics.accuracy_score(labels, predictions),
        "f1": f1,
        "matthews": sklearn.metrics.matthews_corrcoef(labels, predictions),
    }


def test_macro_f1_counts_classes_that_occur_in_either_argument():
    # class 2 is predicted once and never true, class 3 is true once and never predicted, class 4 does not occur
    labels, predictions = [0, 0, 1, 1, 3], [0, 2, 1, 1, 1]
    assert compute(["f1"], predictions, labels, classes=5)["f1"] == pytest.approx((2 / 3 + 4 / 5 + 0 + 0) / 4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_constant_guess_is_measured_without_a_warning(name, classes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0 <= compute([name], [0, 0, 0], [0, 0, 0], classes=classes)[name] <= 1
        assert 0 <= compute([name], [0, 0, 0], [1, 0, 1], classes=classes)[name] <= 1


def test_predictions_and_labels_of_different_lengths_or_none_are_refused():
    with pytest.raises(TaskError, match="as many predictions as labels"):
        compute(["accuracy"], [0, 1], [0], classes=2)
    with pytest.raises(TaskError, match="at least one"):
        compute(["accuracy"], [], [], classes=2)
