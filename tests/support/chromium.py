"""A browser that the tests look at pages with."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from support.missing_programs import skip_without

_READY = "body[data-ready]"
SECONDS = 60


def chromium() -> str:
    """Return the browser's program; without it skip the test, or fail where all must run."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        skip_without("Chromium", "apt-get install chromium")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """Launch a browser without a window."""
    from playwright.sync_api import sync_playwright

    program = chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield opened
        finally:
            opened.close()


@dataclass
class Tab:
    """Page of a dashboard, and the problems found on it."""

    page: Any
    address: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> "Tab":
        """Open a page and wait until its script has rendered."""
        self.page.goto(self.address + path)
        self.page.wait_for_selector(_READY)
        return self

    def settle(self) -> "Tab":
        """Wait until every plot is drawn."""
        self.page.wait_for_function("() => [...document.querySelectorAll('.plot')].every((one) => one.dataset.drawn)")
        return self

    def wait_for_text(self, selector: str, text: str) -> None:
        """Wait until the first element of a selector has a text in it; a selector may have none yet."""
        has = "([selector, text]) => document.querySelector(selector)?.innerText.includes(text)"
        self.page.wait_for_function(has, arg=[selector, text])

    def count(self, selector: str) -> int:
        return int(self.page.locator(selector).count())

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def violations(self) -> list[str]:
        """Return the accessibility violations that axe finds."""
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text())
        found = self.page.evaluate("() => axe.run({ resultTypes: ['violations'] })")["violations"]
        return [f"{one['id']}: {one['help']} ({one['nodes'][0]['html'][:160]})" for one in found]


@contextmanager
def tab(opened: Any, address: str, *, width: int = 1280, scheme: str = "light") -> Iterator[Tab]:
    """Yield a fresh window; in the end it must have no problems and have requested no other address."""
    context = opened.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True, reduced_motion="reduce"
    )
    context.set_default_timeout(1000 * SECONDS)
    page = context.new_page()
    found = Tab(page, address)
    page.on("pageerror", lambda error: found.problems.append(f"error: {error}"))
    page.on("dialog", lambda dialog: found.problems.append(f"dialog: {dialog.message}"))
    page.on("console", lambda message: _add_console_error(found, message))
    page.on("request", lambda request: _add_foreign_request(found, request.url))
    try:
        yield found
        assert found.problems == []
    finally:
        page.unroute_all(behavior="ignoreErrors")  # a page that is closed may just have asked for news
        context.close()


def _add_console_error(found: Tab, message: Any) -> None:
    if message.type == "error":
        found.problems.append(f"console: {message.text}")


def _add_foreign_request(found: Tab, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("blob", "data") and parts.netloc != urlsplit(found.address).netloc:
        found.problems.append(f"asked {url}")
