"""What trials learn: their heads, losses and measurements, for all slots of a pass at once."""

from trial_runner.objectives.classification import ClassificationHead, ClassificationObjective
from trial_runner.objectives.language_model import LanguageModelObjective
from trial_runner.objectives.objective import Objective, TrainingBatch

__all__ = [
    "ClassificationHead",
    "ClassificationObjective",
    "LanguageModelObjective",
    "Objective",
    "TrainingBatch",
]
