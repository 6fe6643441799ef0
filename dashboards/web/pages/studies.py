"""All studies of a storage."""

from dashboards.web.pages.page import Page, PageRequest, study_facts
from studies.records import Annotation, StudyRecord, TrialState, TrialTally, annotations_of


def _studies(asked: PageRequest) -> object:
    """All studies, told by the database: no trial is read for it, and none is ranked."""
    records = asked.storage.ledger.studies()
    tallies = asked.storage.ledger.tallies()
    names = {record.id: record.name for record in records}
    return {
        "storage": asked.storage.ledger.url,
        "studies": [
            {**_entry(record, tallies.get(record.id, _NOTHING), names), **_remark(asked, record)} for record in records
        ],
    }


def _remark(asked: PageRequest, record: StudyRecord) -> dict[str, object]:
    said = annotations_of(asked.storage.ledger.said_by_people(record.id)).get(None, Annotation())
    return {"tags": said.tags, "note": said.note}


_NOTHING = TrialTally(counts=dict.fromkeys(TrialState, 0), best=None, ended_at=None)


def _entry(record: StudyRecord, tally: TrialTally, names: dict[int, str]) -> dict[str, object]:
    facts = study_facts(record, names)
    planned = facts["planned"] or sum(tally.counts.values())
    return {**facts, "planned": planned, "counts": tally.counts, "best": tally.best, "ended_at": tally.ended_at}


PAGE = Page(name="studies", title="Studies", of_study=False, answers={"studies.json": _studies}, is_exported=False)
