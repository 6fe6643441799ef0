"""Predictions of the surrogate for the trials of a ledger."""

from collections.abc import Callable, Mapping, Sequence

from search_space.edit import Edit
from search_space.space.options import LEARNING_RATES
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import ExampleCounts, Reading, StudyRecord, TrialRecord, TrialState
from studies.search.warm_start import warm_start_from_json
from studies.surrogate.features import Features, features_of, unit_lr_of
from studies.surrogate.posterior import EstimatePosterior, SurrogateFitter

FeaturesByNumber = Callable[[Sequence[int]], list[Features]]
"""Function from trial numbers to model features."""


def predictions_of(
    study: StudyRecord,
    trials: Sequence[TrialRecord],
    readings: Mapping[int, Sequence[Reading]],
    examples: ExampleCounts | None,
) -> tuple[EstimatePosterior, FeaturesByNumber]:
    """Return the posterior after the trials of a study, and the function from trial numbers to its inputs.

    Args:
        study: Record of the study.
        trials: All trials, at least one complete.
        readings: Readings by trial number.
        examples: Numbers of examples of an accuracy; None for other scores, or if unknown.
    """
    history, recorded = history_of(trials, readings, examples), RecordedFeatures(study)
    # expected best rates from the study's warm start
    expected_rates = warm_start_from_json(study.section("lessons")).expected_rates(recorded.ranges)
    fitter = SurrogateFitter(recorded.features_of, expected_rates=expected_rates)
    return fitter.integrated_posterior(history), lambda numbers: [
        fitter.features(history[number]) for number in numbers
    ]


def history_of(
    trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]], examples: ExampleCounts | None
) -> StudyHistory:
    """Return the history of trials, of which at least one is complete."""
    noise = ScoreNoise(
        steps=max(trial.steps for trial in trials if trial.state is TrialState.COMPLETE),
        examples=None if examples is None else examples.whole,
        rung_examples=None if examples is None else examples.rungs,
    )
    return StudyHistory.of(trials, readings, noise)


class RecordedFeatures:
    """Model features of recorded trials, also without the backbone.

    Attributes:
        ranges: Lowest and highest learning rate of every form.
    """

    def __init__(self, study: StudyRecord) -> None:
        """Read the study's ranges of learning rates."""
        ranges = LEARNING_RATES | dict(study.section("space").get("learning_rates") or {})
        self.ranges: Mapping[str, tuple[float, float]] = {form: (low, high) for form, (low, high) in ranges.items()}
        self._budget = study.budget_parameters

    def features_of(self, trial: TrialRecord) -> Features:
        """Return the model features of a trial."""

        def position_of(edits: Sequence[Edit], peak_lr: float) -> float:
            form = edits[0].form.name
            normalized_lr = float(str(trial.proposal.get(f"learning_rate.{form}", peak_lr)))
            return unit_lr_of(normalized_lr, *self.ranges.get(form, (normalized_lr, normalized_lr)))

        return features_of(trial, self._budget, position_of)
