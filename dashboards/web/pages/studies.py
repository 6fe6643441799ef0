"""All studies of a storage."""

from dataclasses import asdict

from dashboards.web.pages.page import Page, PageRequest, study_facts
from studies.ledger.ledger import Ledger
from studies.records import Annotation, StudyRecord, annotations_of


def _studies(request: PageRequest) -> object:
    """Return all studies with their counts, computed by the database: it loads no trial and computes no ranking."""
    ledger = request.storage.ledger
    records = ledger.studies()
    names = {record.id: record.name for record in records}
    return {"storage": ledger.url, "studies": [_entry(ledger, record, names) for record in records]}


def _entry(ledger: Ledger, record: StudyRecord, names: dict[int, str]) -> dict[str, object]:
    said = annotations_of(ledger.user_events(record.id)).get(None, Annotation())
    return {**study_facts(record, names), **asdict(ledger.tally(record.id)), "tags": said.tags, "note": said.note}


PAGE = Page(name="studies", title="Studies", of_study=False, answers={"studies.json": _studies}, is_exported=False)
