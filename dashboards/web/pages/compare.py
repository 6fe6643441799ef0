"""Trials side by side, with the data of the trial page."""

from dashboards.web.pages.page import Page, PageRequest, number_in
from studies.analysis.readings import paired_difference


def _difference(request: PageRequest) -> object:
    """Return the paired difference of two trials, given as ``3-17``, on the same validation examples."""
    first, _, second = map(number_in, request.given["*"].partition("-"))
    if first is None or second is None:
        return {"evidence": None}
    study = request.study
    return {"evidence": paired_difference(study.ledger, study.record.name, first, second)}


PAGE = Page(name="compare", title="Compare", answers={"differences/*.json": _difference}, of_confirmation=False)
