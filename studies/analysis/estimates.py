"""What trials would score if they were trained again: the posterior of the model of the search, asked of a ledger.

The best of many noisy scores is partly luck. The model that proposes trials (`studies.surrogate`) has seen all
readings of a study, those of similar configurations, of pruned trials and of replicates included; what it expects of a
configuration is less than a lucky score and more than an unlucky one. It needs nothing but the ledger, so that studies
of any sampler have estimates.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

from search_space.edit import Edit
from search_space.published.whole_model import HEAD_ONLY
from search_space.space.options import LEARNING_RATES
from studies.ledger.ledger import Ledger
from studies.records import ExampleCounts, ReadingRecord, StudyKind, StudyRecord, TrialRecord, TrialState
from studies.score_evidence import Z_95
from studies.search.warm_start import lessons_from_json
from studies.surrogate.features import Features, SideStructure, TrainedSide, log2_budget_fraction, unit_lr_of
from studies.surrogate.observation import Observation
from studies.surrogate.posterior import FIRST_CHECKPOINT, SurrogateFitter
from studies.surrogate.prior_mean import NO_PLACES, Places
from studies.surrogate.recorded_observations import ObservationModel
from studies.surrogate.structure_distances import Array
from trial_runner.tasks.metrics.classes import ACCURACY

FEWEST = FIRST_CHECKPOINT
"""Trials with a reading from which on there are estimates: the model is fitted then for the first time."""

FEWEST_COMPLETE = 4
"""Of them."""
_BLOCK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A normal distribution of what is not known for sure.

    Attributes:
        mean: What is expected.
        deviation: Standard deviation about it.
    """

    mean: float
    deviation: float

    @property
    def reach(self) -> float:
        """Half the length of the interval that holds it with 95%."""
        return Z_95 * self.deviation

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.reach

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + self.reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """The best discovery beside the best published method, both by their estimates.

    Attributes:
        discovered: Number of the trial.
        published: Number of the trial.
        difference: Of what they would score, the discovery's first.
    """

    discovered: int
    published: int
    difference: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """What a study's trials are expected to score.

    Attributes:
        of: By number of the trial; trials with a reading that have not failed. Those of trials that are not complete
            are computed when they are asked for, of all at once when it is iterated.
        lead: Of the best discovery; None without one, or without a published method that is complete.
        over_head: Of the best discovery over the task head alone; None where one of the two is missing.
        joint: Means and covariance of what some of the trials would score, in the order of their numbers as given.
        posterior: The same of any configurations.
    """

    of: Mapping[int, Estimate]
    lead: Lead | None
    over_head: Lead | None
    joint: Callable[[Sequence[int]], tuple[Array, Array]] = field(repr=False, compare=False)
    posterior: Callable[[Sequence[Features]], tuple[Array, Array]] = field(repr=False, compare=False)


def estimates_of(ledger: Ledger, study: StudyRecord, trials: Sequence[TrialRecord]) -> Estimates | None:
    """Estimates of a study's trials; None while there is too little to go by, and of confirmations.

    Args:
        ledger: Where the study is.
        study: Its record.
        trials: All of its trials.
    """
    if study.kind is not StudyKind.SEARCH or not are_enough(trials):
        return None
    progress = tuple((one.number, one.fingerprint, one.state, one.steps, one.last_score) for one in trials)
    key = ledger.url, study.id, study.created_at, progress
    return _remembered(_EstimateQuery(key=key, ledger=ledger, study=study, trials=tuple(trials)))


def are_enough(trials: Sequence[TrialRecord]) -> bool:
    """Whether trials tell enough for estimates."""
    complete = sum(trial.state is TrialState.COMPLETE for trial in trials)
    return complete >= FEWEST_COMPLETE and sum(trial.steps > 0 for trial in trials) >= FEWEST


@dataclass(frozen=True, slots=True, kw_only=True)
class _EstimateQuery:
    """A question; two are equal if the study is the same and has got no further in between."""

    key: tuple[object, ...]
    ledger: Ledger = field(compare=False)
    study: StudyRecord = field(compare=False)
    trials: tuple[TrialRecord, ...] = field(compare=False)


@lru_cache(maxsize=64)
def _remembered(asked: _EstimateQuery) -> Estimates:
    study = asked.study
    readings = asked.ledger.readings_by_trial(study.id)
    return estimated(study, asked.trials, readings, counted_examples(asked.ledger, study))


def counted_examples(ledger: Ledger, study: StudyRecord) -> ExampleCounts | None:
    """How many examples a score is a share of right answers of; None where it is no such share, or not known."""
    return ledger.example_counts(study.id) if study.metric == ACCURACY.name else None


def estimated(
    study: StudyRecord,
    trials: Sequence[TrialRecord],
    readings: Mapping[int, Sequence[ReadingRecord]],
    examples: ExampleCounts | None = None,
) -> Estimates:
    """Estimates of trials, at least one of them complete, from what was read of them.

    Args:
        study: Of the trials.
        trials: All of them.
        readings: By number of the trial.
        examples: That scores are shares of; None where they are none, or it is not known.
    """
    found = _Predictions(study, trials, readings, examples)
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE and trial.replicate_of is None]
    discovered = _best([trial for trial in complete if trial.method is None], found)
    published = _best([trial for trial in complete if trial.method is not None], found)
    head = _best([trial for trial in complete if trial.method == HEAD_ONLY.name], found)
    lead, over_head = (found.lead(discovered, other) for other in (published, head))
    return Estimates(of=found, lead=lead, over_head=over_head, joint=found.joint, posterior=found.posterior)


def _best(trials: Sequence[TrialRecord], estimates: Mapping[int, Estimate]) -> int | None:
    numbers = [trial.number for trial in trials if trial.number in estimates]
    return min(numbers, key=lambda number: (-estimates[number].mean, number), default=None)


class _Predictions(Mapping[int, Estimate]):
    """What trials are expected to score by the model of the search, told what a ledger holds of a study.

    Complete ones are predicted at once, others in blocks when one is asked for.
    """

    def __init__(
        self,
        study: StudyRecord,
        trials: Sequence[TrialRecord],
        readings: Mapping[int, Sequence[ReadingRecord]],
        examples: ExampleCounts | None,
    ) -> None:
        """Predict the complete ones."""
        self._history = history_of(trials, readings, examples)
        views = RecordedViews(study, trials)
        self._believer = SurrogateFitter(views, places=recorded_places(study, views.ranges))
        self._belief = self._believer.belief(self._history)
        self.posterior = self._belief.joint
        # replicates count for their originals
        read = [
            trial
            for trial, seen in zip(trials, self._history, strict=True)
            if seen.readings and trial.replicate_of is None and trial.state is not TrialState.FAILED
        ]
        self._known: dict[int, Estimate] = {}
        self._others = dict.fromkeys(one.number for one in read if one.state is not TrialState.COMPLETE)
        self._predict([one.number for one in read if one.state is TrialState.COMPLETE])

    def _views(self, numbers: Sequence[int]) -> list[Features]:
        return [self._believer.view(self._history[number]) for number in numbers]

    def joint(self, numbers: Sequence[int]) -> tuple[Array, Array]:
        """Means and covariance of the scores of some trials, by their numbers."""
        return self._belief.joint(self._views(numbers))

    def lead(self, discovered: int | None, published: int | None) -> Lead | None:
        """Of a discovery over a published method, by their numbers; None where one is missing."""
        if discovered is None or published is None:
            return None
        mean, deviation = self._belief.difference(*self._views([discovered, published]))
        difference = Estimate(mean=mean, deviation=deviation)
        return Lead(discovered=discovered, published=published, difference=difference)

    def __getitem__(self, number: int) -> Estimate:
        """The estimate of a trial."""
        if number in self._others:
            del self._others[number]
            self._predict([number, *islice(self._others, _BLOCK - 1)])
        return self._known[number]

    def __iter__(self) -> Iterator[int]:
        """Numbers of all trials that have one; all are predicted."""
        if self._others:
            self._predict(list(self._others))
        return iter(sorted(self._known))

    def _predict(self, numbers: Sequence[int]) -> None:
        means, deviations = self._belief.predict(self._views(numbers))
        for number, mean, deviation in zip(numbers, means, deviations, strict=True):
            self._known[number] = Estimate(mean=float(mean), deviation=float(deviation))
            self._others.pop(number, None)

    def __len__(self) -> int:
        """How many trials have one."""
        return len(self._known) + len(self._others)

    def __contains__(self, number: object) -> bool:
        """Whether a trial has one."""
        return number in self._known or number in self._others


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
