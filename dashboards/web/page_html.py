"""HTML of the pages: head, navigation, addresses of the data. Scripts draw the rest; no value of a study is markup."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from dashboards.colours import FORM_COLOURS
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Page
from search_space.words.ports import PORT_NAMES
from studies.analysis.visible import visible
from studies.records import StudyKind, StudyRecord

STATIC = Path(str(files("dashboards.web"))) / "static"

_OWN_STYLES = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
_TEMPLATES = Environment(loader=PackageLoader("dashboards.web"), autoescape=True, undefined=StrictUndefined)


def plotly_folder() -> Path:
    """Return the folder of Plotly's wheel that contains its script."""
    return Path(str(files("plotly"))) / "package_data"


@cache
def plotly_styles() -> tuple[str, ...]:
    """Return the ids of the style sheets that Plotly writes into a page without elements of these ids.

    They are for maps, which no page draws, and the content security policy forbids inline styles.
    """
    return tuple(_OWN_STYLES.findall((plotly_folder() / "plotly.min.js").read_text(encoding="utf-8")))


def render_page(page: Page, study: StudyRecord | None, *, is_live: bool, may_write: bool = False) -> str:
    """Render a page as HTML.

    Args:
        study: Subject of the page; None for pages about the whole storage.
        is_live: Whether a server answers; otherwise the page is a file with its data next to it.
        may_write: Whether notes, tags and requests to stop are accepted.
    """
    is_search = study is None or study.kind is StudyKind.SEARCH
    up = "./" if page.name in ("live", "studies") else "../"
    root = f"{up}../../" if study is not None and is_live else up
    return _TEMPLATES.get_template("page.html").render(
        page=page,
        pages=[
            one
            for one in PAGES
            if one.of_study and one.is_listed and (is_live or one.is_exported) and (is_search or one.of_confirmation)
        ],
        base="" if study is None else up,
        root=root,
        api=f"{root}api/studies/{study.id}/" if study is not None and is_live else f"{root}api/",
        is_live=is_live,
        may_write=may_write,
        name="" if study is None else visible(study.name),
        colours=dict(FORM_COLOURS),
        tensors=dict(PORT_NAMES),
        styles=plotly_styles(),
    )
