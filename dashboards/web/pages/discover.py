"""Views of discover, each computed once per state of the study."""

from dashboards.figures.cards import figures_of
from dashboards.terminal.frames import frame_cells
from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.discover import ANALYSES, discovered, knowledge_of
from studies.errors import StudiesError
from studies.study_file.recorded_specification import recorded_space


def _views(request: PageRequest) -> object:
    return {"views": [{"name": name, "title": title} for name, (title, _) in ANALYSES.items()]}


def _view(request: PageRequest) -> object:
    """Return a view: the newest result, or ``pending`` before the first."""
    name = request.given["*"]
    if name not in ANALYSES:
        raise StudiesError(f"a view must be one of {', '.join(ANALYSES)}; got {name!r}.")
    study = request.study
    found = study.view(name, lambda: _answer(request, name), waits=request.waits)
    problem, answer = ("", None) if found is None else (found.problem, found.value)
    return {"view": name, "pending": found is None, "problem": problem, "answer": answer}


def _answer(request: PageRequest, name: str) -> object:
    study = request.study
    knowledge = knowledge_of(study.ledger, study.record.name, recorded_space)
    (card,) = discovered(knowledge, [name])
    return {
        "question": card.question,
        "sentences": card.sentences,
        "note": card.note,
        **frame_cells(card.data),
        "figures": figures_of(card),
    }


PAGE = Page(
    name="discover",
    title="Discover",
    answers={"views.json": _views, "views/*.json": _view},
    stars={"views/*.json": lambda _: ANALYSES},
    of_confirmation=False,
)
