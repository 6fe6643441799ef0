"""All studies of a storage."""

from dashboards.web.pages.page import Page, PageRequest, study_facts
from studies.records import Annotation, StudyRecord, TrialTally, annotations_of


def _studies(request: PageRequest) -> object:
    """Return all studies with their counts, computed by the database: it loads no trial and computes no ranking."""
    ledger = request.storage.ledger
    records = ledger.studies()
    names = {record.id: record.name for record in records}
    return {
        "storage": ledger.url,
        "studies": [{**_entry(one, ledger.tally(one.id), names), **_remark(request, one)} for one in records],
    }


def _remark(request: PageRequest, record: StudyRecord) -> dict[str, object]:
    said = annotations_of(request.storage.ledger.user_events(record.id)).get(None, Annotation())
    return {"tags": said.tags, "note": said.note}


def _entry(record: StudyRecord, tally: TrialTally, names: dict[int, str]) -> dict[str, object]:
    facts = study_facts(record, names)
    return {**facts, "counts": tally.counts, "best": tally.best, "ended_at": tally.ended_at}


PAGE = Page(name="studies", title="Studies", of_study=False, answers={"studies.json": _studies}, is_exported=False)
