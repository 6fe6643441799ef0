"""What the dashboards show, read from a ledger: frozen values, in the order in which they are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from studies.confirming.record import record_of
from studies.store.ledger import Ledger
from studies.store.records import (
    ArtefactRecord,
    AttemptRecord,
    EventRecord,
    ReadingRecord,
    StudyKind,
    StudyRecord,
    TrialRecord,
    TrialState,
)
from trial_runner.tasks.generation.metrics import LOSS_METRICS, TEXT_KINDS

DISCOVERED = "discovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """How a study stands.

    Attributes:
        name: Unique in the storage.
        backbone: As the user gave it.
        task: Name, folder or hub name of its task.
        metric: What is maximised.
        budget_parameters: Most stored parameters of a trial.
        backbone_parameters: The denominator of percentages.
        planned: Trials that the study file asked for when the study was created.
        counts: Number of trials in every state, absent states as 0.
        best: The complete trial with the highest score, the earliest of equals; None before one is complete.
        created_at: UTC.
        confirms: The study that it confirms; None for a study that searches.
    """

    name: str
    backbone: str
    task: str
    metric: str
    budget_parameters: int
    backbone_parameters: int
    planned: int
    counts: Mapping[TrialState, int]
    best: TrialRecord | None
    created_at: datetime
    confirms: str | None

    @property
    def trials(self) -> int:
        """Number of trials, whatever their state."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardRow:
    """One trial beside the others.

    Attributes:
        place: 1, 2, 3, … in the whole study.
        number: Of the trial.
        method: Published method that was resized to the budget, or ``discovered``.
        sentence: What the configuration is, in words.
        state: Complete, pruned or failed.
        score: Final score of a complete trial, newest score of others; None without a reading.
        steps: Steps at which the score was measured.
        scored_by: What the score is of: the study's metric, or ``loss``, with a minus sign, where that stands in for a
            metric of texts until a trial is complete.
        parameters: Stored parameters.
        budget_fraction: Of the budget that is used, in [0, 1].
        backbone_fraction: Stored parameters per parameter of the backbone.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        attention_learning_rate: None without edits at attention.
        ffn_learning_rate: None without edits at the FFN.
        reason: Why it was pruned or failed.
    """

    place: int
    number: int
    method: str
    sentence: str
    state: TrialState
    score: float | None
    steps: int
    scored_by: str
    parameters: int
    budget_fraction: float
    backbone_fraction: float
    attention_share: float
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    reason: str | None

    @property
    def is_discovered(self) -> bool:
        """Whether it is a proposal of the search, not a published method."""
        return self.method == DISCOVERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """The trials of a study by how well they did.

    Attributes:
        summary: How the study stands.
        rows: Complete trials by score, then pruned ones by how far they came, then failed ones.
        hidden: How many trials were left out.
    """

    summary: StudySummary
    rows: tuple[LeaderboardRow, ...]
    hidden: int


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
    """

    study: StudyRecord
    trial: TrialRecord
    attempts: tuple[AttemptRecord, ...]
    readings: tuple[ReadingRecord, ...]
    artefacts: tuple[ArtefactRecord, ...]
    events: tuple[EventRecord, ...]


def study_summaries(ledger: Ledger) -> tuple[StudySummary, ...]:
    """Every study of a storage, oldest first."""
    studies = sorted(ledger.studies(), key=lambda study: study.id)
    return tuple(_summary(ledger, study) for study in studies)


def study_summary(ledger: Ledger, name: str) -> StudySummary:
    """How one study stands.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    return _summary(ledger, ledger.study(name))


def leaderboard(ledger: Ledger, name: str, *, top: int | None = None) -> Leaderboard:
    """The trials of a study that have ended, best first.

    Args:
        ledger: Where the study is.
        name: Of the study.
        top: How many rows; the best trial of every published method stays whatever its place. None keeps all.

    Raises:
        UnknownStudyError: If there is no study of that name.
    """
    study = ledger.study(name)
    ended = sorted((trial for trial in ledger.trials(study.id) if trial.state.is_terminal), key=_rank)
    rows = [_row(place, trial, study) for place, trial in enumerate(ended, start=1)]
    shown = rows if top is None else [*rows[:top], *_best_published(rows[top:], rows[:top])]
    return Leaderboard(summary=_summary(ledger, study), rows=tuple(shown), hidden=len(rows) - len(shown))


def trial_page(ledger: Ledger, name: str, number: int) -> TrialPage:
    """All that is known of one trial.

    Raises:
        UnknownStudyError: If there is no study of that name.
        UnknownTrialError: If it has no trial of that number.
    """
    study = ledger.study(name)
    return TrialPage(
        study=study,
        trial=ledger.trial(study.id, number),
        attempts=tuple(ledger.attempts(study.id, number)),
        readings=tuple(ledger.readings(study.id, number)),
        artefacts=tuple(ledger.artefacts(study.id, number)),
        events=tuple(event for event in ledger.events(study.id) if event.trial == number),
    )


def _rank(trial: TrialRecord) -> tuple[int, int, float, int]:
    """Complete by score, then pruned by steps and score, then failed; the earlier of equals first."""
    if trial.state is TrialState.COMPLETE and trial.score is not None:
        return 0, 0, -trial.score, trial.number
    newest = -trial.last_score if trial.last_score is not None else float("inf")
    return (1 if trial.state is TrialState.PRUNED else 2), -trial.steps, newest, trial.number


def _best_published(rest: Sequence[LeaderboardRow], shown: Sequence[LeaderboardRow]) -> list[LeaderboardRow]:
    seen = {row.method for row in shown}
    best = []
    for row in rest:
        if not row.is_discovered and row.method not in seen:
            seen.add(row.method)
            best.append(row)
    return best


def _row(place: int, trial: TrialRecord, study: StudyRecord) -> LeaderboardRow:
    return LeaderboardRow(
        place=place,
        number=trial.number,
        method=trial.method or DISCOVERED,
        sentence=trial.description,
        state=trial.state,
        score=trial.score if trial.state is TrialState.COMPLETE else trial.last_score,
        steps=trial.steps,
        scored_by=scored_by(trial, study),
        parameters=trial.stored_parameters,
        budget_fraction=trial.stored_parameters / study.budget_parameters,
        backbone_fraction=trial.stored_parameters / study.backbone_parameters,
        attention_share=trial.attention_share,
        attention_learning_rate=trial.attention.learning_rate if trial.attention else None,
        ffn_learning_rate=trial.ffn.learning_rate if trial.ffn else None,
        reason=trial.reason,
    )


def scored_by(trial: TrialRecord, study: StudyRecord) -> str:
    """What the newest score of a trial is of; see `LeaderboardRow`."""
    task = study.specification.get("task")
    entries = task if isinstance(task, dict) else {}
    is_early = trial.state is not TrialState.COMPLETE
    has_stand_in = entries.get("early_metric") == "loss" and entries.get("kind") in TEXT_KINDS
    is_of_loss = any(metric.name == study.metric for metric in LOSS_METRICS)
    return "loss" if is_early and has_stand_in and not is_of_loss else study.metric


def _summary(ledger: Ledger, study: StudyRecord) -> StudySummary:
    counts = ledger.state_counts(study.id)
    complete = ledger.trials(study.id, states=[TrialState.COMPLETE])
    task = study.specification.get("task")
    planned = study.specification.get("trials")
    return StudySummary(
        name=study.name,
        backbone=study.backbone,
        task=_task_name(task) if isinstance(task, Mapping) else "",
        metric=study.metric,
        budget_parameters=study.budget_parameters,
        backbone_parameters=study.backbone_parameters,
        planned=planned if isinstance(planned, int) else 0,
        counts={state: counts.get(state, 0) for state in TrialState},
        best=min(complete, key=_rank, default=None),
        created_at=study.created_at,
        confirms=record_of(study).study if study.kind is StudyKind.CONFIRMATION else None,
    )


def _task_name(task: Mapping[str, object]) -> str:
    return next((str(task[key]) for key in ("name", "folder", "hub") if task.get(key)), "")
