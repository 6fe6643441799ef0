"""Regression of a number on a text or a pair of texts, such as how alike two sentences are, as a kind of task."""

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
    """A task that can be trained on; its only label is the name of what is predicted, its labels are numbers."""

    objective: ClassVar[str] = "regression"

    @property
    def mean(self) -> float:
        """Of the numbers of train: the constant with the least loss."""
        return float(self.splits["train"].labels.mean())

    @property
    def guessing_loss(self) -> float:
        """Mean loss of predicting the mean of train for everything: its variance."""
        return float(self.splits["train"].labels.var())

    @property
    def constant_score(self) -> float | None:
        """Score on validation of predicting the mean of train for everything."""
        true = self.splits["validation"].labels
        value = compute([self.metric], np.full(len(true), self.mean), true, classes=None)[self.metric]
        return score_of(self.metric, value) if METRICS[self.metric].higher_is_better else None


@dataclass(frozen=True, slots=True)
class RegressionPreparation(ClassificationPreparation):
    """Implement `trial_runner.tasks.kind.Preparation`."""

    made: ClassVar[type[PreparedTask]] = PreparedRegression

    @property
    def facts(self) -> Mapping[str, Any]:
        """Implement `Preparation`."""
        own = {"text": text_columns(self.task), "number": label_column(self.task)}
        return {**place_facts(self.task), **own}

    def read(self, dataset: "Dataset", split: str, group: str) -> RawSplit:
        """Implement `Preparation`."""
        return read_split(dataset, self.task, split, group, read_label=_read_number)

    def encoder(self, splits: Mapping[str, RawSplit]) -> tuple[tuple[str, ...], Encode]:
        """What is predicted by its name, and what makes an array of the numbers of a split."""
        different = set(splits["train"].labels)
        if len(different) < 2:
            raise TaskError(
                f"train must have at least two different numbers; every one is {different.pop()}. Name another column."
            )
        return (label_column(self.task),), _numbers


def _numbers(rows: RawSplit, _: str) -> npt.NDArray[Any]:
    return np.array(rows.labels, dtype=np.float64)


def _read_number(value: Any, class_names: list[str] | None, row: int, split: str) -> Label | None:
    """A label as a number; None if there is none."""
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
