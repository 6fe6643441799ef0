"""Two trials side by side; it asks what the page of a trial asks."""

from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.readings import paired_difference


def _difference(asked: PageRequest) -> object:
    """How much better one trial is than another on the same examples; numbers stand as ``3-17``."""
    first, _, second = asked.given["*"].partition("-")
    if not (first.isdecimal() and second.isdecimal() and len(first) < 16 and len(second) < 16):
        return {"evidence": None}
    study = asked.study
    return {"evidence": paired_difference(study.ledger, study.record.name, int(first), int(second))}


PAGE = Page(name="compare", title="Compare", answers={"differences/*.json": _difference})
