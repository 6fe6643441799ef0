"""How studies stand, each in a few numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from search_space.closest_name import name_hint
from studies.analysis.frames import frame
from studies.analysis.ranks import Ranking, ranking_of
from studies.errors import StudiesError, WishError
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, StudyRecord, TrialRecord, TrialState

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """How a study stands.

    Attributes:
        name: Unique in the storage.
        backbone: As the user gave it, in words.
        task: Name, folder or hub name of its task.
        metric: What is maximised.
        budget_parameters: Most stored parameters of a trial.
        backbone_parameters: The denominator of percentages.
        planned: Trials that the study file asked for when the study was created.
        counts: Number of trials in every state, absent states as 0.
        best: The best complete trial, by estimate (see `studies.analysis.ranks`); None before one is complete, and of
            a confirmation, whose trials repeat a few configurations.
        best_score: Its final score, the mean over its seeds; None without a best trial.
        created_at: UTC.
        confirms: The study that it confirms; None for a study that searches.
        learned_from: The earlier studies that it learned from when it was begun.
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
    best_score: float | None
    created_at: datetime
    confirms: str | None
    learned_from: tuple[str, ...] = ()

    @property
    def trials(self) -> int:
        """Number of trials, whatever their state."""
        return sum(self.counts.values())


def study_summaries(ledger: Ledger) -> tuple[StudySummary, ...]:
    """Every study of a storage, oldest first."""
    studies = sorted(ledger.studies(), key=lambda study: study.id)
    return tuple(summary_of(ledger, study) for study in studies)


def check_number(trial: object) -> None:
    """Refuse a word that names no trial: only ``best`` does.

    Raises:
        WishError: If it is one.
    """
    if isinstance(trial, str) and trial != "best":
        raise WishError(f"a trial must be a number or 'best'; got {trial!r}.{name_hint(trial, ['best'])}")


def best_number(ledger: Ledger, name: str) -> int:
    """Number of the best trial of a study.

    Raises:
        UnknownStudyError: If there is no study of that name.
        StudiesError: If no trial is complete.
    """
    summary = summary_of(ledger, ledger.study(name))
    if summary.best is None:
        raise StudiesError(
            f"study {name!r} must have a complete trial; got none among {summary.trials}. Launch it again."
        )
    return summary.best.number


def summaries_table(summaries: Sequence[StudySummary]) -> "pandas.DataFrame":
    """Studies as a frame, one row each."""
    plain = ("name", "backbone", "task", "metric", "budget_parameters", "backbone_parameters", "planned")
    entries = [
        {
            **{name: getattr(summary, name) for name in plain},
            **{state.value: summary.counts[state] for state in TrialState},
            "best_trial": summary.best.number if summary.best else None,
            "best_score": summary.best_score,
            "created_at": summary.created_at,
            "confirms": summary.confirms,
        }
        for summary in summaries
    ]
    states = [state.value for state in TrialState]
    return frame(entries, columns=[*plain, *states, "best_trial", "best_score", "created_at", "confirms"])


def summary_of(ledger: Ledger, study: StudyRecord, ranking: Ranking | None = None) -> StudySummary:
    """How a study that was read stands.

    Args:
        ledger: Where it is.
        study: Its record.
        ranking: Of its trials, if that is known already.
    """
    planned = study.specification.get("trials")
    ranking = None if study.kind is StudyKind.CONFIRMATION else ranking or ranking_of(ledger, study)
    best = None if ranking is None else ranking.best
    return StudySummary(
        name=study.name,
        backbone=str(study.source),
        task=task_name(study),
        metric=study.metric,
        budget_parameters=study.budget_parameters,
        backbone_parameters=study.backbone_parameters,
        planned=planned if isinstance(planned, int) else 0,
        counts=ledger.state_counts(study.id),
        best=None if best is None else ledger.trial(study.id, best.number),
        best_score=None if ranking is None or best is None else ranking.scores[best.number],
        created_at=study.created_at,
        learned_from=tuple(study.section("lessons").get("sources", ())),
        confirms=ledger.confirmation(study).study if study.kind is StudyKind.CONFIRMATION else None,
    )


def task_name(study: StudyRecord) -> str:
    """Name, folder or hub name of a study's task; empty where it has none."""
    task = study.section("task")
    hub = task.get("hub")
    return str(task.get("name") or task.get("folder") or (hub["name"] if isinstance(hub, Mapping) else ""))
