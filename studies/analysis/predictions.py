"""The model of the search, told what a ledger holds of a study, and asked what its trials would score."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from search_space.edit import Edit
from search_space.space.options import LEARNING_RATES
from studies.records import ExampleCounts, ReadingRecord, StudyRecord, TrialRecord, TrialState
from studies.search.warm_start import lessons_from_json
from studies.surrogate.features import Features, SideStructure, TrainedSide, log2_budget_fraction, unit_lr_of
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import SurrogateFitter
from studies.surrogate.prior_mean import NO_PLACES, Places
from studies.surrogate.recorded_observations import ObservationModel
from studies.surrogate.structure_distances import Array


class Predictions:
    """What trials of a study, at least one of them complete, are expected to score.

    Attributes:
        posterior: Means and covariance of what any configurations would score.
    """

    def __init__(
        self,
        study: StudyRecord,
        trials: Sequence[TrialRecord],
        readings: Mapping[int, Sequence[ReadingRecord]],
        examples: ExampleCounts | None,
    ) -> None:
        """Fit the model.

        Args:
            study: Of the trials.
            trials: All of them.
            readings: By number of the trial.
            examples: That scores are shares of; None where they are none, or it is not known.
        """
        self._history = history_of(trials, readings, examples)
        views = RecordedViews(study, trials)
        self._believer = SurrogateFitter(views.view_of, places=recorded_places(study, views.ranges))
        self._belief = self._believer.belief(self._history)
        self.posterior = self._belief.joint

    def _views(self, numbers: Sequence[int]) -> list[Features]:
        return [self._believer.view(self._history[number]) for number in numbers]

    def joint(self, numbers: Sequence[int]) -> tuple[Array, Array]:
        """Means and covariance of the scores of some trials, by their numbers."""
        return self._belief.joint(self._views(numbers))

    def difference(self, first: int, second: int) -> tuple[float, float]:
        """How much more a trial would score than another, by their numbers, and the standard deviation of that."""
        return self._belief.difference(*self._views([first, second]))

    def of(self, numbers: Sequence[int]) -> tuple[Array, Array]:
        """Means and standard deviations of the scores of some trials, by their numbers."""
        return self._belief.predict(self._views(numbers))


def history_of(
    trials: Sequence[TrialRecord], readings: Mapping[int, Sequence[ReadingRecord]], examples: ExampleCounts | None
) -> list[Observation]:
    """Trials of which at least one is complete as the model is told of them."""
    model = ObservationModel(
        steps=max(trial.steps for trial in trials if trial.state is TrialState.COMPLETE),
        examples=None if examples is None else examples.whole,
        rung_examples=None if examples is None else examples.rungs,
        use_validation_loss=True,
    )
    return [
        replace(
            model.observation(trial, readings.get(trial.number, ())),
            ended_at=0.0 if trial.ended_at is None else trial.ended_at.timestamp(),
        )
        for trial in trials
    ]


def recorded_places(study: StudyRecord, ranges: Mapping[str, tuple[float, float]]) -> Places:
    """Where the best rates of forms were expected from what the study learned of earlier ones."""
    lessons = study.specification.get("lessons")
    return lessons_from_json(lessons).places(ranges) if isinstance(lessons, Mapping) else NO_PLACES


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
        space = study.specification.get("space")
        given = space.get("learning_rates") if isinstance(space, Mapping) else None
        ranges = LEARNING_RATES | dict(given or {})
        self.ranges: Mapping[str, tuple[float, float]] = {form: (low, high) for form, (low, high) in ranges.items()}
        self._budget = study.budget_parameters
        self._trials = {trial.number: trial for trial in trials}

    def view_of(self, observation: Observation) -> Features:
        """What the model sees of a trial."""
        trial = self._trials[observation.number]
        configuration = trial.configuration
        at_attention = round(trial.attention_share * trial.stored_parameters)
        at_ffn = trial.stored_parameters - at_attention
        return Features(
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
