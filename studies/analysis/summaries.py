"""Summaries of studies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from search_space.closest_name import name_hint
from studies.analysis.frames import frame
from studies.analysis.ranks import Ranking, ranking_of
from studies.errors import InvalidRequestError, StudiesError
from studies.ledger.ledger import Ledger
from studies.records import StudyKind, StudyRecord, TrialRecord, TrialState

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """Summary of a study.

    Attributes:
        name: Name, unique in the storage.
        backbone: Backbone as the user gave it, in words.
        task: Name, folder or hub name of its task.
        metric: Metric that is maximized.
        budget_parameters: Largest number of stored parameters of a trial.
        backbone_parameters: Number of parameters of the backbone, the denominator of percentages.
        planned: Number of trials in the study file at creation.
        counts: Number of trials in every state, zeros included.
        best: Best complete trial by estimate (see `studies.analysis.ranks`); None before one is complete, and for a
            confirmation, whose trials repeat a few configurations.
        best_score: Final score of the best trial, the mean over its seeds; None without one.
        created_at: Time of creation in UTC.
        confirms: Study that it confirms; None for a search study.
        learned_from: Sources of its warm start.
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
        """Number of trials in any state."""
        return sum(self.counts.values())


def study_summaries(ledger: Ledger) -> tuple[StudySummary, ...]:
    """Return every study of a storage, oldest first."""
    studies = sorted(ledger.studies(), key=lambda study: study.id)
    return tuple(summary_of(ledger, study) for study in studies)


def check_number(trial: object) -> None:
    """Refuse any word but ``best`` as a trial.

    Raises:
        InvalidRequestError: If it is another word.
    """
    if isinstance(trial, str) and trial != "best":
        raise InvalidRequestError(f"a trial must be a number or 'best'; got {trial!r}.{name_hint(trial, ['best'])}")


def best_number(ledger: Ledger, name: str) -> int:
    """Return the number of the best trial of a study.

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
    """Return studies as a frame, one row each."""
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
    """Return the summary of a study.

    Args:
        ledger: Ledger of the study.
        study: Record of the study.
        ranking: Ranking of its trials, if available.
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
    """Return the name, folder or hub name of a study's task; empty without one."""
    task = study.section("task")
    hub = task.get("hub")
    return str(task.get("name") or task.get("folder") or (hub["name"] if isinstance(hub, Mapping) else ""))
