"""Two trials side by side; it asks what the page of a trial asks."""

from dashboards.web.pages.page import Page, PageRequest, number_in
from studies.analysis.readings import paired_difference


def _difference(asked: PageRequest) -> object:
    """How much better one trial is than another on the same examples; numbers stand as ``3-17``."""
    first, _, second = map(number_in, asked.given["*"].partition("-"))
    if first is None or second is None:
        return {"evidence": None}
    study = asked.study
    return {"evidence": paired_difference(study.ledger, study.record.name, first, second)}


PAGE = Page(name="compare", title="Compare", answers={"differences/*.json": _difference})
