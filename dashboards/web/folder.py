"""A study as files: pages and their data, for any web server; nothing asks a database any more."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dashboards.errors import DashboardWishError
from dashboards.jsonable import to_json
from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import WatchedStudy
from dashboards.web.page_html import STATIC, plotly_folder, rendered
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Page, PageRequest


def export_study(url: str, name: str, folder: Path) -> int:
    """Write a study to a new folder; returns how many files that took.

    Args:
        url: Of its storage.
        folder: Must not exist, or be empty.

    Raises:
        DashboardError: If the folder holds something.
        UnknownStudyError: If there is no study of that name.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DashboardWishError(f"the folder of an export must be new or empty; got {folder}. Choose another.")
    storage = WatchedStorage(url)
    try:
        study = storage.named(name)
        study.refresh()
        folder.mkdir(parents=True, exist_ok=True)
        return sum(_write(folder / place, content) for place, content in _files(storage, study)) + _copy(folder)
    finally:
        storage.close()


def _files(storage: WatchedStorage, study: WatchedStudy) -> Iterator[tuple[str, bytes]]:
    """Pages and answers by their place in the folder."""
    for page in PAGES:
        if not (page.of_study and page.is_exported):
            continue
        place = "index.html" if page.name == "live" else f"{page.name}/index.html"
        yield place, rendered(page, study.record, is_live=False).encode()
        yield from _answers(storage, study, page)
    yield ".nojekyll", b""


def _answers(storage: WatchedStorage, study: WatchedStudy, page: Page) -> Iterator[tuple[str, bytes]]:
    """What a page asks for; of answers to many questions those that can be foreseen."""
    for name, give in page.answers.items():
        asked = PageRequest(storage=storage, watched=study, waits=True)
        stars = page.stars[name](asked) if name in page.stars else () if "*" in name else ("",)
        for star in map(str, stars):
            yield f"api/{name.replace('*', star)}", to_json(give(replace(asked, given={"*": star})))


def _write(path: Path, content: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return 1


def _copy(folder: Path) -> int:
    """What every page needs, as it stands in the packages, but for the modes that it has there."""
    target, plotly = folder / "static", plotly_folder() / "plotly.min.js"
    own = [path for path in STATIC.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    places = {target / path.relative_to(STATIC): path for path in own} | {target / "plotly" / plotly.name: plotly}
    return sum(_write(place, path.read_bytes()) for place, path in places.items())
