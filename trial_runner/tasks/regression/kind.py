"""Regression of a number on a text or a pair of texts, such as the similarity of two sentences, as a task kind."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from trial_runner.errors import TaskError
from trial_runner.tasks.classification.kind import ClassificationPreparation, Encode, Labelled
from trial_runner.tasks.classification.raw import Label, RawSplit, label_column, read_split, text_columns
from trial_runner.tasks.classification.split import PreparedTask
from trial_runner.tasks.data.objects import THOUSANDS, number_of
from trial_runner.tasks.evaluation import compute, score_of
from trial_runner.tasks.kind import place_facts
from trial_runner.tasks.metrics import METRICS

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PreparedRegression(PreparedTask):
    """Prepared task whose labels are numbers; ``labels`` holds only the name of their column."""

    objective: ClassVar[str] = "regression"

    @property
    def mean(self) -> float:
        """Mean of the numbers of train, the constant prediction with the least loss."""
        return float(self.splits["train"].labels.mean())

    @property
    def guessing_loss(self) -> float:
        """Mean loss of predicting the mean of train for every example, equal to the variance of train."""
        return float(self.splits["train"].labels.var())

    @property
    def constant_score(self) -> float | None:
        """Validation score of predicting the mean of train for every example; None where lower is better."""
        true = self.splits["validation"].labels
        value = compute([self.metric], np.full(len(true), self.mean), true, classes=None)[self.metric]
        return score_of(self.metric, value) if METRICS[self.metric].higher_is_better else None


@dataclass(frozen=True, slots=True)
class RegressionPreparation(ClassificationPreparation):
    """Preparation of a regression task: from rows to tokens with a number."""

    made: ClassVar[type[PreparedTask]] = PreparedRegression

    @property
    def facts(self) -> Mapping[str, Any]:
        """Settings of the task that decide the tokens, JSON-able."""
        own = {"text": text_columns(self.task), "number": label_column(self.task)}
        return {**place_facts(self.task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawSplit:
        """Return the rows of a dataset, their labels as numbers."""
        return read_split(dataset, self.task, split, group, read_label=_read_number)

    def encoder(self, splits: Mapping[str, RawSplit]) -> tuple[tuple[str, ...], Encode]:
        """Return the name of the predicted column, and the encoder of a split's numbers as an array.

        Raises:
            TaskError: If train has fewer than two different numbers.
        """
        different = set(splits["train"].labels)
        if len(different) < 2:
            raise TaskError(
                f"train must have at least two different numbers; every one is {different.pop()}. Name another column."
            )
        return (label_column(self.task),), _numbers


def _numbers(rows: RawSplit, _: str) -> npt.NDArray[Any]:
    return np.array(rows.labels, dtype=np.float64)


def _read_number(value: Any, class_names: list[str] | None, row: int, split: str) -> Label | None:
    """Return a label as a number; None for a missing one.

    Raises:
        TaskError: If it is no finite number, or its comma is ambiguous.
    """
    if value is None or value != value or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and THOUSANDS.fullmatch(value.strip()):
        raise TaskError(
            f"a label of a regression must be a number; {value!r} in split {split!r}, row {row}, may have a fraction "
            "or none. Write it with a point, or without a comma."
        )
    try:
        number = math.nan if isinstance(value, bool) or class_names is not None else number_of(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise TaskError(
            f"a label of a regression must be a number; got {value!r} in split {split!r}, row {row}. "
            "Name another column, or take kind: classification."
        )
    return number


REGRESSION = Labelled(
    name="regression", usual_metric="pearson", column_keys=("text", "label"), made_ready_by=RegressionPreparation
)
