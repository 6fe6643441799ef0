"""What confirmations of a study say: fresh seeds on the test split."""

from dashboards.figures.confirmations import confirmation_figure
from dashboards.web.pages.page import Page, PageRequest
from studies.confirmation.results import confirmation_results, notes, verdict_sentences


def _confirmations(asked: PageRequest) -> object:
    """Those of a study; of a confirmation, those of the study that it confirms."""
    record = asked.study.record
    key = record.id if record.parent_id is None else record.parent_id
    study = asked.storage.study(key)
    own = [one for one in asked.storage.studies() if one.record.parent_id == key]
    # what lm-eval has measured of trials that have ended is told by events alone
    state = tuple((one.record.id, one.refresh(), len(asked.storage.ledger.events(one.record.id))) for one in own)
    found = study.view("confirmations", lambda: _results(asked, study.record.name), state=state, wait=asked.waits)
    if found is None:
        return {"pending": True, "confirmations": []}
    return {"pending": False, "problem": found.problem, "confirmations": found.value}


def _results(asked: PageRequest, name: str) -> object:
    return [
        {
            "result": result,
            "sentences": verdict_sentences(result),
            "notes": notes(result),
            "figure": confirmation_figure(result),
        }
        for result in confirmation_results(asked.storage.ledger, name)
    ]


PAGE = Page(name="confirmations", title="Confirmations", answers={"confirmations.json": _confirmations})
