"""Readings: tables of trials and readings, and comparisons of two trials by example."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from search_space.words.dimensions import SideDimensions
from studies.analysis.frames import frame
from studies.ledger.ledger import Ledger
from studies.records import Reading, StudyRecord, TrialRecord, TrialState
from studies.score_evidence import Evidence, paired_evidence
from trial_runner.tasks import METRICS, TASK_KINDS
from trial_runner.tasks.metrics import Measures

if TYPE_CHECKING:
    import pandas

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


def trials_table(ledger: Ledger, name: str) -> "pandas.DataFrame":
    """Return every trial of a study by number, with its design dimensions at both sublayers and its results.

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


def readings_table(readings: Sequence[Reading]) -> "pandas.DataFrame":
    """Return the readings by trial and step, one column per metric."""
    metrics = tuple(dict.fromkeys(name for reading in readings for name in reading.metrics))
    columns = ("trial", "step", "rung", "score", "train_loss", "seconds")
    own = tuple(name for name in metrics if name not in columns)
    entries = [
        {**{name: getattr(reading, name) for name in columns}, **{name: reading.metrics.get(name) for name in own}}
        for reading in readings
    ]
    return frame(entries, columns=columns)


def scored_by(trial: TrialRecord, study: StudyRecord) -> str:
    """Return the metric of a trial's newest score; see `LeaderboardRow`."""
    is_early = trial.state is not TrialState.COMPLETE
    kind, metric = TASK_KINDS.get(str(study.section("task").get("kind"))), METRICS.get(study.metric)
    has_stand_in = kind is not None and kind.prompt is not None
    is_of_loss = metric is not None and metric.measures is Measures.LOSS
    return "loss" if is_early and has_stand_in and not is_of_loss else study.metric


def paired_difference(ledger: Ledger, name: str, first: int, second: int) -> Evidence | None:
    """Return how much better a trial is than another by example, by accuracy if available, else by loss.

    Args:
        ledger: Ledger of the study.
        name: Name of the study.
        first: Number of a trial.
        second: Number of another.

    Returns:
        None without measurements of both on equally many examples.

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
