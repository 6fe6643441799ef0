"""Training objectives: task heads, losses and measurements, for all slots of a pass at once."""

from search_space.registry import Registry
from trial_runner.objectives.classification import CLASSIFICATION_OBJECTIVE, ClassificationHead, ClassificationObjective
from trial_runner.objectives.language_model import LANGUAGE_MODEL, LanguageModelObjective
from trial_runner.objectives.objective import Objective, ObjectiveFactory, TrainingBatch
from trial_runner.objectives.regression import REGRESSION_OBJECTIVE, RegressionObjective

OBJECTIVES: Registry[ObjectiveFactory] = Registry(
    "objective",
    {"classification": CLASSIFICATION_OBJECTIVE, "regression": REGRESSION_OBJECTIVE, "language_model": LANGUAGE_MODEL},
    kind=ObjectiveFactory,
    group="deltaspace.objectives",
)

__all__ = [
    "OBJECTIVES",
    "ClassificationHead",
    "ClassificationObjective",
    "LanguageModelObjective",
    "Objective",
    "ObjectiveFactory",
    "RegressionObjective",
    "TrainingBatch",
]
