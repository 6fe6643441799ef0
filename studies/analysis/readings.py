"""What was measured: one trial with all that is known of it, and every trial of a study as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import TYPE_CHECKING

from search_space.words.dimensions import SideDimensions
from studies.analysis.estimates import estimates_of
from studies.analysis.frames import frame
from studies.ledger.ledger import Ledger
from studies.records.reading import ArtefactRecord, ReadingRecord
from studies.records.study import EventRecord, StudyRecord
from studies.records.trial import AttemptRecord, TrialRecord, TrialState
from studies.score_evidence import Estimate, Evidence, paired_evidence
from trial_runner.tasks import METRICS, TASK_KINDS
from trial_runner.tasks.metrics import Measures

if TYPE_CHECKING:
    import pandas

_FITTED = 2_000
"""In larger studies no model is fitted for a single trial that did not run to its end; nothing repeats it, either."""
_BEFORE = ("number", "state", "score", "steps", "last_score", "method", "description")
_SIDES = ("attention", "ffn")
_DIMENSIONS = tuple(field.name for field in fields(SideDimensions))
_AFTER = (
    "attention_share",
    "stored_parameters",
    "trained_parameters",
    "head_parameters",
    "extra_flops",
    "origin",
    "replicate_of",
    "seed",
    "fingerprint",
    "reason",
    "created_at",
    "ended_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPage:
    """All that is known of one trial.

    Attributes:
        study: Its study.
        trial: The trial.
        attempts: Its executions.
        readings: Its measurements, by step.
        artefacts: Its files.
        events: What happened to it.
        replicates: The trials that repeat it with other seeds.
        estimate: What it is expected to score if it is trained again to the end; None where that cannot be told.
    """

    study: StudyRecord
    trial: TrialRecord
    attempts: tuple[AttemptRecord, ...]
    readings: tuple[ReadingRecord, ...]
    artefacts: tuple[ArtefactRecord, ...]
    events: tuple[EventRecord, ...]
    replicates: tuple[TrialRecord, ...]
    estimate: Estimate | None

    @property
    def scores(self) -> tuple[float, ...]:
        """Final scores of its trainings, its own first."""
        return tuple(one.score for one in (self.trial, *self.replicates) if one.score is not None)

    @property
    def score(self) -> float | None:
        """Their mean; None unless it is complete."""
        return fmean(self.scores) if self.scores else None


def trial_page(ledger: Ledger, name: str, number: int) -> TrialPage:
    """All that is known of one trial.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of that number.
    """
    study = ledger.study(name)
    trial = ledger.trial(study.id, number)
    is_small = sum(ledger.state_counts(study.id).values()) <= _FITTED
    trials = ledger.outlines(study.id) if is_small or trial.state is TrialState.COMPLETE else []
    return TrialPage(
        study=study,
        trial=trial,
        attempts=tuple(ledger.attempts(study.id, number)),
        readings=tuple(ledger.readings(study.id, number)),
        artefacts=tuple(ledger.artefacts(study.id, number)),
        events=tuple(event for event in ledger.events(study.id) if event.trial == number),
        replicates=tuple(ledger.trial(study.id, one.number) for one in trials if one.replicate_of == number),
        estimate=estimates_of(ledger, study, trials).of.get(number),
    )


def trials_table(ledger: Ledger, name: str) -> "pandas.DataFrame":
    """Every trial of a study by number: what it is, its four dimensions at either sublayer, and how it went.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    trials = ledger.trials(ledger.study(name).id)
    columns = [*_BEFORE, *(f"{side}_{one}" for side in _SIDES for one in _DIMENSIONS), *_AFTER]
    return frame([_entry(trial) for trial in trials], columns=columns)


def _entry(trial: TrialRecord) -> dict[str, object]:
    sides = {"attention": trial.attention, "ffn": trial.ffn}
    dimensions = {f"{side}_{one}": getattr(sides[side], one, None) for side in _SIDES for one in _DIMENSIONS}
    before, after = ({name: getattr(trial, name) for name in names} for names in (_BEFORE, _AFTER))
    return {**before, **dimensions, **after}


def readings_table(readings: Sequence[ReadingRecord]) -> "pandas.DataFrame":
    """Measurements by trial and step, one column per metric."""
    metrics = tuple(dict.fromkeys(name for reading in readings for name in reading.metrics))
    columns = ("trial", "step", "rung", "score", "train_loss", "seconds")
    own = tuple(name for name in metrics if name not in columns)
    entries = [
        {**{name: getattr(reading, name) for name in columns}, **{name: reading.metrics.get(name) for name in own}}
        for reading in readings
    ]
    return frame(entries, columns=columns)


def scored_by(trial: TrialRecord, study: StudyRecord) -> str:
    """What the newest score of a trial is of; see `LeaderboardRow`."""
    is_early = trial.state is not TrialState.COMPLETE
    kind, metric = TASK_KINDS.get(str(study.section("task").get("kind"))), METRICS.get(study.metric)
    has_stand_in = kind is not None and kind.prompt is not None
    is_of_loss = metric is not None and metric.measures is Measures.LOSS
    return "loss" if is_early and has_stand_in and not is_of_loss else study.metric


def paired_difference(ledger: Ledger, name: str, first: int, second: int) -> Evidence | None:
    """How much better a trial is than another, example by example: by accuracy, else by the loss.

    Args:
        ledger: Where the study is.
        name: Of the study.
        first: Number of a trial.
        second: Number of another.

    Returns:
        None where they were not both measured there, or not on as many examples.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of one of the numbers.
    """
    study = ledger.study(name)
    found = []
    for number in (first, second):
        ledger.trial(study.id, number)
        found.append({one.step: one for one in ledger.examples(study.id, number)})
    common = found[0].keys() & found[1].keys()
    return paired_evidence(found[0][max(common)], found[1][max(common)]) if common else None
