"""Regression of a number on a text or a pair of texts, such as how alike two sentences are, as a kind of task."""

from trial_runner.tasks.classification.kind import Labelled
from trial_runner.tasks.regression.preparation import RegressionPreparation

REGRESSION = Labelled(
    name="regression", usual_metric="pearson", column_keys=("text", "label"), made_ready_by=RegressionPreparation
)
