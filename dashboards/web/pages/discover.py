"""What a study has taught: the views, each worked out once per state of the study."""

from dashboards.figures.views import figures_of
from dashboards.web.pages.page import Asked, Page
from studies.errors import StudiesError
from studies.queries.discover import QUESTIONS, TITLES, Answer, discovered, knowledge_of
from studies.specification.recorded import recorded_space


def _views(asked: Asked) -> object:
    return {"views": [{"name": name, "title": TITLES[name]} for name in QUESTIONS]}


def _view(asked: Asked) -> object:
    """One view: as it is, as it was while a newer one is on its way, or that it is on its way."""
    name = asked.given["*"]
    if name not in QUESTIONS:
        raise StudiesError(f"a view must be one of {', '.join(QUESTIONS)}; got {name!r}.")
    study = asked.study
    found = study.view(name, lambda: _answer(asked, name), wait=asked.waits)
    if found is None:
        return {"view": name, "pending": True, "problem": "", "answer": None}
    return {"view": name, "pending": False, "problem": found.problem, "answer": found.value}


def _answer(asked: Asked, name: str) -> object:
    study = asked.study
    knowledge = knowledge_of(study.ledger, study.record.name, recorded_space)
    answer: Answer = discovered(knowledge, [name])[0]
    table = answer.table()
    return {
        "question": answer.question,
        "sentences": answer.sentences,
        "note": answer.note,
        "columns": table.columns,
        "rows": table.rows,
        "figures": figures_of(knowledge, answer),
    }


PAGE = Page(
    name="discover",
    title="Discover",
    answers={"views.json": _views, "views/*.json": _view},
    stars={"views/*.json": lambda asked: QUESTIONS},
)
