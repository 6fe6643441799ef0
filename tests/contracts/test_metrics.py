"""Contract of every metric, the project's own and those of installed packages."""

import math
import random
from typing import Any

import numpy as np
import pytest
from support.foreign_package import run_with_package

from trial_runner.tasks import METRICS, TASK_KINDS, Metric, score_of
from trial_runner.tasks.metrics import Measures

WORDS = ["red", "blue", "hill", "sea", "one", "two", "three", "stone"]
REL = 1e-9  # of values that are sums over a handful of examples

Inputs = tuple[Any, ...]


def texts_of(seed: int, count: int = 9) -> list[str]:
    """Return texts of five to nine words, long enough for every n-gram that is counted."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(5, 9))) for _ in range(count)]


def right(metric: Metric) -> Inputs:
    """Return the inputs of a metric for a perfect trial."""
    if metric.measures is Measures.CLASSES:
        labels = np.arange(12) % 3
        return labels, labels, 3
    if metric.measures is Measures.NUMBERS:
        numbers = np.arange(12) % 5 + 0.5
        return numbers, numbers
    if metric.measures is Measures.TEXTS:
        texts = texts_of(0)
        return texts, [(text,) for text in texts]
    return (0.0,)


def wrong(metric: Metric, seed: int) -> Inputs:
    """Return the inputs of a metric for a poor trial."""
    draw = np.random.default_rng(seed)
    if metric.measures is Measures.CLASSES:
        return draw.integers(0, 3, 12), np.arange(12) % 3, 3
    if metric.measures is Measures.NUMBERS:
        return draw.normal(size=12), np.arange(12) % 5 + 0.5
    if metric.measures is Measures.TEXTS:
        references = texts_of(0)
        return texts_of(seed + 1), [(one, other) for one, other in zip(references, texts_of(99), strict=True)]
    return (float(draw.uniform(0.1, 20)),)


def is_within(value: float, bounds: tuple[float, float]) -> bool:
    low, high = bounds
    slack = REL * max(1.0, abs(low), high if math.isfinite(high) else 1.0)
    return low - slack <= value <= high + slack


def every_metric(*measures: Measures) -> pytest.MarkDecorator:
    metrics = [metric for metric in METRICS.values() if metric.measures in measures]
    return pytest.mark.parametrize("metric", metrics, ids=lambda metric: metric.name)


@every_metric(*Measures)
def test_a_metric_has_its_name_and_kinds_that_exist_and_list_it(metric):
    assert METRICS[metric.name] is metric
    assert metric.kinds
    assert all(metric.name in TASK_KINDS[kind].metrics for kind in metric.kinds)
    assert metric.needs_generation == (metric.measures is Measures.TEXTS)


@every_metric(*Measures)
def test_perfect_prediction_has_the_best_value(metric):
    best = metric.bounds[metric.higher_is_better]
    assert metric.compute(*right(metric)) == pytest.approx(best, rel=REL, abs=REL)


@pytest.mark.parametrize("seed", range(4))
@every_metric(*Measures)
def test_values_are_within_the_bounds_and_a_worse_prediction_scores_lower(metric, seed):
    value = metric.compute(*wrong(metric, seed))
    assert type(value) is float
    assert is_within(value, metric.bounds)
    assert score_of(metric.name, value) == metric.score(value) < metric.score(metric.compute(*right(metric)))


@every_metric(Measures.CLASSES, Measures.NUMBERS, Measures.TEXTS)
def test_the_order_of_the_examples_does_not_matter(metric):
    predicted, true, *rest = wrong(metric, 7)
    order = np.random.default_rng(3).permutation(len(true))
    one = metric.compute(predicted, true, *rest)
    if metric.measures in (Measures.CLASSES, Measures.NUMBERS):
        other = metric.compute(predicted[order], true[order], *rest)
    else:
        other = metric.compute([predicted[row] for row in order], [true[row] for row in order], *rest)
    assert other == pytest.approx(one, rel=REL, abs=REL)


@every_metric(Measures.LOSS)
def test_a_lower_loss_scores_higher(metric):
    scores = [metric.score(metric.compute(loss)) for loss in (0.0, 0.5, 2.0, 50.0)]
    assert scores == sorted(set(scores), reverse=True)


def test_an_installed_package_adds_metrics_that_studies_may_maximise(tmp_path):
    printed = run_with_package(
        tmp_path,
        source="""
from trial_runner.tasks.metrics import Measures, Metric

def compute(predictions, labels, classes):
    return float((predictions != labels).sum())

ERRORS = Metric(
    name="errors", kinds=("classification",), measures=Measures.CLASSES, compute=compute, higher_is_better=False,
    bounds=(0.0, float("inf")),
)
DIGITS = Metric(
    name="digits", kinds=("instruction",), measures=Measures.TEXTS,
    compute=lambda texts, references: sum(text.isdigit() for text in texts) / len(texts),
)
""",
        points={"deltaspace.metrics": "errors = foreign_module:ERRORS\ndigits = foreign_module:DIGITS"},
        script="""
from studies.study_file import specification_from_mapping
from trial_runner.tasks import TASK_KINDS, compute, score_of
from trial_runner.tasks.evaluation import compute_text

task = {"name": "docstrings", "metric": "errors"}
study = specification_from_mapping({"name": "mine", "backbone": "embedded", "task": task, "budget": "0.5%"})
measured = compute(TASK_KINDS["classification"].metrics, [0, 1, 1], [0, 1, 0], classes=2)
print(study.task.metric, sorted(measured), score_of("errors", measured["errors"]))

task = {"kind": "instruction", "folder": ".", "messages": "messages", "metric": "digits"}
study = specification_from_mapping({"name": "mine", "backbone": "embedded", "task": task, "budget": "0.5%"})
metrics = [name for name in TASK_KINDS["instruction"].metrics if name in ("digits", "exact_match")]
print(study.task.metric, compute_text(metrics, ["12", "a dozen"], [("12",), ("12",)]))
""",
    )
    assert printed.splitlines()[:2] == [
        "errors ['accuracy', 'errors', 'f1', 'matthews'] -1.0",
        "digits {'exact_match': 0.5, 'digits': 0.5}",
    ]
