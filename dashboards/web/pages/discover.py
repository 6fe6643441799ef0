"""What a study has taught: the views, each worked out once per state of the study."""

from dashboards.figures.cards import figures_of
from dashboards.terminal.frames import frame_cells
from dashboards.web.pages.page import Page, PageRequest
from studies.analysis.discover import ANALYSES, discovered, knowledge_of
from studies.errors import StudiesError
from studies.study_file.recorded_specification import recorded_space


def _views(asked: PageRequest) -> object:
    return {"views": [{"name": name, "title": one.title} for name, one in ANALYSES.items()]}


def _view(asked: PageRequest) -> object:
    """One view: as it is, as it was while a newer one is on its way, or that it is on its way."""
    name = asked.given["*"]
    if name not in ANALYSES:
        raise StudiesError(f"a view must be one of {', '.join(ANALYSES)}; got {name!r}.")
    study = asked.study
    found = study.view(name, lambda: _answer(asked, name), waits=asked.waits)
    if found is None:
        return {"view": name, "pending": True, "problem": "", "answer": None}
    return {"view": name, "pending": False, "problem": found.problem, "answer": found.value}


def _answer(asked: PageRequest, name: str) -> object:
    study = asked.study
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
    stars={"views/*.json": lambda asked: ANALYSES},
)
