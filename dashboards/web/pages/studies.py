"""All studies of a storage."""

from dashboards.web.pages.page import Asked, Page
from dashboards.web.watching.study import WatchedStudy
from studies.queries.summaries import task_name
from studies.store.records import StudyKind, TrialState


def _studies(asked: Asked) -> object:
    watched = asked.storage.studies()
    names = {study.record.id: study.record.name for study in watched}
    return {"storage": asked.storage.ledger.url, "studies": [_entry(study, names) for study in watched]}


def _entry(study: WatchedStudy, names: dict[int, str]) -> dict[str, object]:
    study.refresh()
    record, trials = study.record, study.trials
    complete = [trial.score for trial in trials if trial.score is not None and trial.state is TrialState.COMPLETE]
    ended = [trial.ended_at for trial in trials if trial.ended_at is not None]
    planned = record.specification.get("trials")
    return {
        "id": record.id,
        "name": record.name,
        "task": task_name(record),
        "backbone": record.backbone,
        "metric": record.metric,
        "budget_parameters": record.budget_parameters,
        "backbone_parameters": record.backbone_parameters,
        "planned": planned if isinstance(planned, int) else len(trials),
        "counts": study.counts(),
        "best": max(complete, default=None),
        "created_at": record.created_at,
        "ended_at": max(ended, default=None),
        "confirms": names.get(record.parent_id or -1) if record.kind is StudyKind.CONFIRMATION else None,
    }


PAGE = Page(name="studies", title="Studies", of_study=False, answers={"studies.json": _studies}, is_exported=False)
