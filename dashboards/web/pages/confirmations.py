"""Confirmations of a study: fresh seeds, measured on the test split."""

from dashboards.confirmations import ConfirmationCard, confirmation_card
from dashboards.figures.confirmations import confirmation_figure
from dashboards.terminal.frames import frame_cells
from dashboards.web.pages.page import Page, PageRequest
from studies.confirmation.results import confirmation_results


def _confirmations(request: PageRequest) -> object:
    """Return the confirmations of a study; for a confirmation, those of its search."""
    record = request.study.record
    key = record.id if record.parent_id is None else record.parent_id
    study = request.storage.study(key)
    own = [one for one in request.storage.studies() if one.record.parent_id == key]
    state = tuple((one.record.id, one.refresh()) for one in own)
    found = study.view("confirmations", lambda: _results(request, study.record.name), state=state, waits=request.waits)
    if found is None:
        return {"pending": True, "confirmations": []}
    return {"pending": False, "problem": found.problem, "confirmations": found.value}


def _results(request: PageRequest, name: str) -> object:
    return [_entry(confirmation_card(result)) for result in confirmation_results(request.storage.ledger, name)]


def _entry(card: ConfirmationCard) -> dict[str, object]:
    result = card.result
    return {
        "name": result.name,
        "standing": f"{result.ended} of {result.trials} trainings have ended; {len(result.seeds)} seeds each, "
        f"{result.metric} on the test split",
        "sentences": card.sentences,
        "notes": card.notes,
        "figure": confirmation_figure(card),
        "scores": {
            "columns": ["configuration", "seed", "score"],
            "rows": [
                [one.label, seed, score]
                for one in result.contenders
                for seed, score in zip(result.seeds, one.scores, strict=True)
                if score is not None
            ],
        },
        "tables": [{"title": title, **frame_cells(table)} for title, table in card.tables.items()],
    }


PAGE = Page(name="confirmations", title="Confirmations", answers={"confirmations.json": _confirmations})
