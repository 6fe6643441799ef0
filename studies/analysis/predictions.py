"""The model of the search, told what a ledger holds of a study, and asked what its trials would score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from search_space.edit import Edit
from search_space.space.options import LEARNING_RATES
from studies.records import ExampleCounts, Reading, StudyRecord, TrialRecord, TrialState
from studies.search.warm_start import warm_start_from_json
from studies.surrogate.features import Features, SideStructure, TrainedSide, log2_budget_fraction, unit_lr_of
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import Posterior, SurrogateFitter
from studies.surrogate.recorded_observations import ObservationModel

Viewed = Callable[[Sequence[int]], list[Features]]
"""What the model sees of some trials, by their numbers."""


def predictions_of(
    study: StudyRecord,
    trials: Sequence[TrialRecord],
    readings: Mapping[int, Sequence[Reading]],
    examples: ExampleCounts | None,
) -> tuple[Posterior, Viewed]:
    """What any configurations would score after the trials of a study, and what is asked about those.

    Args:
        study: Of the trials.
        trials: All of them, at least one complete.
        readings: By number of the trial.
        examples: That scores are shares of; None where they are none, or it is not known.
    """
    history, views = history_of(trials, readings, examples), RecordedViews(study, trials)
    # where the best rates of forms were expected from what the study learned of earlier ones
    places = warm_start_from_json(study.section("lessons")).expected_rates(views.ranges)
    fitter = SurrogateFitter(views.features_of, expected_rates=places)
    return fitter.posterior(history), lambda numbers: [fitter.features(history[number]) for number in numbers]


def history_of(
    trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[Reading]], examples: ExampleCounts | None
) -> list[Observation]:
    """Trials of which at least one is complete as the model is told of them."""
    model = ObservationModel(
        steps=max(trial.steps for trial in trials if trial.state is TrialState.COMPLETE),
        examples=None if examples is None else examples.whole,
        rung_examples=None if examples is None else examples.rungs,
    )
    return [
        replace(
            model.observation(trial, readings.get(trial.number, ())),
            ended_at=0.0 if trial.ended_at is None else trial.ended_at.timestamp(),
        )
        for trial in trials
    ]


class RecordedViews:
    """What the model sees of trials of a ledger, whose backbone may not be at hand.

    Attributes:
        ranges: Lowest and highest learning rate of every form.
    """

    def __init__(self, study: StudyRecord, trials: Sequence[TrialRecord]) -> None:
        """Read the ranges of a study that are in force.

        Args:
            study: Its record.
            trials: All of its trials.
        """
        ranges = LEARNING_RATES | dict(study.section("space").get("learning_rates") or {})
        self.ranges: Mapping[str, tuple[float, float]] = {form: (low, high) for form, (low, high) in ranges.items()}
        self._budget = study.budget_parameters
        self._trials = {trial.number: trial for trial in trials}

    def features_of(self, observation: Observation) -> Features:
        """What the model sees of a trial."""
        trial = self._trials[observation.number]
        configuration = trial.configuration
        at_attention = round(trial.attention_share * trial.stored_parameters)
        at_ffn = trial.stored_parameters - at_attention
        return (
            self._side(trial, configuration.attention, observation.attention_learning_rate, at_attention),
            self._side(trial, configuration.ffn, observation.ffn_learning_rate, at_ffn),
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
