"""Predictions of the surrogate for the trials of a ledger."""

from collections.abc import Callable, Mapping, Sequence

from search_space.edit import Edit
from search_space.space.options import LEARNING_RATES
from studies.history.history import StudyHistory
from studies.history.noise import ScoreNoise
from studies.records import ExampleCounts, Reading, StudyRecord, TrialRecord, TrialState
from studies.search.warm_start import warm_start_from_json
from studies.surrogate.features import Features, SideStructure, TrainedSide, log2_budget_fraction, unit_lr_of
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
        configuration = trial.configuration
        at_attention = round(trial.attention_share * trial.stored_parameters)
        at_ffn = trial.stored_parameters - at_attention
        return (
            self._side(trial, configuration.attention, trial.attention_learning_rate, at_attention),
            self._side(trial, configuration.ffn, trial.ffn_learning_rate, at_ffn),
        )

    def _side(
        self, trial: TrialRecord, edits: Sequence[Edit], peak_lr: float | None, stored: int
    ) -> TrainedSide | None:
        if not edits or peak_lr is None:
            return None
        form = edits[0].form.name
        normalized_lr = float(str(trial.proposal.get(f"learning_rate.{form}", peak_lr)))
        low, high = self.ranges.get(form, (normalized_lr, normalized_lr))
        return TrainedSide(
            SideStructure.of(edits), unit_lr_of(normalized_lr, low, high), log2_budget_fraction(stored, self._budget)
        )
