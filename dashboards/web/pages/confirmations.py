"""Confirmations of a study: fresh seeds, measured on the test split."""

from collections.abc import Sequence

from dashboards.confirmations import ConfirmationCard, confirmation_card
from dashboards.figures.confirmations import confirmation_figure
from dashboards.terminal.frames import frame_cells
from dashboards.web.pages.page import Page, PageRequest
from studies.confirmation.results import confirmation_result
from studies.records import StudyKind


def _confirmations(request: PageRequest) -> object:
    """Return the confirmations of a study; for a confirmation, itself."""
    study = request.study
    key, is_search = study.record.id, study.record.kind is StudyKind.SEARCH
    own = [one for one in request.storage.studies() if one.record.parent_id == key] if is_search else [study]
    names, state = [one.record.name for one in own], tuple((one.record.id, one.refresh()) for one in own)
    found = study.view("confirmations", lambda: _results(request, names), state=state, waits=request.waits)
    if found is None:
        return {"pending": True, "confirmations": []}
    return {"pending": False, "problem": found.problem, "confirmations": found.value}


def _results(request: PageRequest, names: Sequence[str]) -> object:
    return [_entry(confirmation_card(confirmation_result(request.storage.ledger, name))) for name in names]


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


PAGE = Page(
    name="confirmations", title="Confirmations", answers={"confirmations.json": _confirmations}, of_confirmation=False
)
