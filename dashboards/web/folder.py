"""Export of a study as files: pages and their data for any web server, without a database."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dashboards.errors import DashboardRequestError
from dashboards.jsonable import to_json
from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import WatchedStudy
from dashboards.web.page_html import STATIC, plotly_folder, render_page
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Page, PageRequest


def export_study(url: str, name: str, folder: Path) -> int:
    """Write a study to a new folder and return the number of files.

    Args:
        url: URL of the storage.
        folder: Target; it must not exist, or be empty.

    Raises:
        DashboardError: If the folder is not empty.
        UnknownStudyError: If there is no study of that name.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DashboardRequestError(f"the folder of an export must be new or empty; got {folder}. Choose another one.")
    storage = WatchedStorage(url)
    try:
        study = storage.named(name)
        study.refresh()
        folder.mkdir(parents=True, exist_ok=True)
        return sum(_write(folder / place, content) for place, content in _files(storage, study)) + _copy(folder)
    finally:
        storage.close()


def _files(storage: WatchedStorage, study: WatchedStudy) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every page and its data."""
    for page in PAGES:
        if not (page.of_study and page.is_exported):
            continue
        place = "index.html" if page.name == "live" else f"{page.name}/index.html"
        yield place, render_page(page, study.record, is_live=False).encode()
        yield from _answers(storage, study, page)
    yield ".nojekyll", b""


def _answers(storage: WatchedStorage, study: WatchedStudy, page: Page) -> Iterator[tuple[str, bytes]]:
    """Yield the data of a page; for names with a `*`, one file per possible value."""
    for name, function in page.answers.items():
        request = PageRequest(storage=storage, watched=study, waits=True)
        stars = page.stars[name](request) if name in page.stars else () if "*" in name else ("",)
        for star in map(str, stars):
            yield f"api/{name.replace('*', star)}", to_json(function(replace(request, given={"*": star})))


def _write(path: Path, content: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return 1


def _copy(folder: Path) -> int:
    """Copy scripts and style sheets, without their file modes, and return the number of files."""
    target, plotly = folder / "static", plotly_folder() / "plotly.min.js"
    own = [path for path in STATIC.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    places = {target / path.relative_to(STATIC): path for path in own} | {target / "plotly" / plotly.name: plotly}
    return sum(_write(place, path.read_bytes()) for place, path in places.items())
