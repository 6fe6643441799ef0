"""All studies of a storage."""

from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.summaries import task_name
from studies.records import StudyKind, StudyRecord, TrialState, TrialTally


def _studies(asked: PageRequest) -> object:
    """All studies, told by the database: no trial is read for it, and none is ranked."""
    records = asked.storage.records()
    tallies = asked.storage.ledger.tallies()
    names = {record.id: record.name for record in records}
    return {
        "storage": asked.storage.ledger.url,
        "studies": [_entry(record, tallies.get(record.id, _NOTHING), names) for record in records],
    }


_NOTHING = TrialTally(counts=dict.fromkeys(TrialState, 0), best=None, ended_at=None)


def _entry(record: StudyRecord, tally: TrialTally, names: dict[int, str]) -> dict[str, object]:
    planned = record.specification.get("trials")
    return {
        "id": record.id,
        "name": record.name,
        "task": task_name(record),
        "backbone": str(record.source),
        "metric": record.metric,
        "budget_parameters": record.budget_parameters,
        "backbone_parameters": record.backbone_parameters,
        "planned": planned if isinstance(planned, int) else sum(tally.counts.values()),
        "counts": tally.counts,
        "best": tally.best,
        "created_at": record.created_at,
        "ended_at": tally.ended_at,
        "confirms": names.get(record.parent_id or -1) if record.kind is StudyKind.CONFIRMATION else None,
    }


PAGE = Page(name="studies", title="Studies", of_study=False, answers={"studies.json": _studies}, is_exported=False)
