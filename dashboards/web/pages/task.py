"""Studies of one task side by side."""

from collections.abc import Mapping
from dataclasses import replace

from dashboards.web.cache.study import WatchedStudy
from dashboards.web.pages.page import Page, PageRequest, study_facts
from studies.analysis.methods import method_of
from studies.analysis.ranks import mean_scores
from studies.analysis.summaries import task_name
from studies.records import StudyKind, TrialOutline


def _task(request: PageRequest) -> object:
    """Return all tasks, and the searches of the one that is given by name with the scores of their complete trials."""
    name = request.given.get("name", "")
    studies = [one for one in request.storage.studies() if one.record.kind is StudyKind.SEARCH]
    tasks = dict.fromkeys(task_name(one.record) for one in studies)
    return {"tasks": list(tasks), "studies": [_entry(one) for one in studies if task_name(one.record) == name]}


def _entry(study: WatchedStudy) -> Mapping[str, object]:
    study.refresh()
    scores = mean_scores(study.trials)
    complete = [replace(trial, score=scores[trial.number]) for trial in study.trials if trial.number in scores]
    columns = ("number", "score", "stored_parameters", "method")
    return {
        **study_facts(study.record, {}),
        "counts": study.counts,
        "discovered": _best([trial for trial in complete if method_of(trial) is None]),
        "published": _best([trial for trial in complete if method_of(trial) is not None]),
        "columns": columns,
        "rows": [[getattr(trial, name) for name in columns] for trial in complete],
    }


def _best(trials: list[TrialOutline]) -> Mapping[str, object] | None:
    """Return the trial with the highest score; None if there is none."""
    best = max(trials, key=lambda trial: trial.score or 0.0, default=None)
    columns = ("number", "method", "description", "score")
    return None if best is None else {name: getattr(best, name) for name in columns}


PAGE = Page(
    name="task",
    title="Studies of a task",
    of_study=False,
    is_listed=False,
    answers={"task.json": _task},
    is_exported=False,
)
