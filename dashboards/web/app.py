"""The addresses of the dashboard: pages, answers, events, files."""

import asyncio
from collections.abc import AsyncIterator
from functools import cache

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import REFUSALS, WatchedStudy
from dashboards.web.json_bytes import to_json
from dashboards.web.page_html import STATIC, plotly_folder, rendered
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Answer, Page, PageRequest
from dashboards.web.pages.query import MOST_CHARACTERS, answer
from dashboards.web.safety import ASKING, Door, Guard
from search_space.json_text import read_json_text
from studies.errors import UnknownStudyError, UnknownTrialError

LOOK_SECONDS = 0.4
"""How often a study is looked at while somebody watches."""

_BEAT_SECONDS = 10.0
_LIKE = 'a query looks like {"sql": "select …"}.'


class _Key(IntegerConvertor):
    """The key of a study: so many digits that a number is read of them at once."""

    regex = "[0-9]{1,15}"


register_url_convertor("key", _Key())


@cache
def answers(*, of_study: bool) -> dict[str, Answer]:
    """By name below ``api/`` what pages ask for, of one study or of all."""
    return {name: give for page in PAGES if page.of_study is of_study for name, give in page.answers.items()}


class Dashboard:
    """Answers what the pages ask of a storage."""

    def __init__(self, storage: WatchedStorage) -> None:
        """Answer of a storage, which need not be there yet."""
        self._storage = storage

    def application(self, door: Door) -> Starlette:
        """The addresses."""
        return Starlette(
            routes=[
                Route("/", self._page),
                Route("/studies/{study:key}/", self._page),
                Route("/studies/{study:key}/{page}/", self._page),
                Route(ASKING, self._query, methods=["POST"]),
                Route("/api/studies/{study:key}/events", self._events),
                Route("/api/studies/{study:key}/{name:path}", self._data),
                Route("/api/{name:path}", self._data),
                Mount("/static/plotly", StaticFiles(directory=plotly_folder())),
                Mount("/static", StaticFiles(directory=STATIC)),
                Route("/{page}/", self._page),
            ],
            middleware=[Middleware(Guard, door=door)],
            exception_handlers={HTTPException: _explained, **dict.fromkeys(REFUSALS, _refused)},
        )

    async def _page(self, request: Request) -> Response:
        key = request.path_params.get("study")
        page = _page_named(request.path_params.get("page", "studies" if key is None else "live"), key is not None)
        study = None if key is None else (await run_in_threadpool(self._storage.study, key)).record
        return HTMLResponse(rendered(page, study, is_live=True))

    async def _data(self, request: Request) -> Response:
        key, name = request.path_params.get("study"), request.path_params["name"]
        give, star = _answer_named(name, key is not None)
        given = {**request.query_params, "*": star}

        def work() -> bytes:
            study = None if key is None else self._storage.study(key)
            return to_json(give(PageRequest(storage=self._storage, watched=study, given=given)))

        return Response(await run_in_threadpool(work), media_type="application/json")

    async def _query(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, f"a query comes as application/json; {_LIKE}")
        sql = await _sql(request)
        return Response(to_json(await run_in_threadpool(answer, self._storage.url, sql)), media_type="application/json")

    async def _events(self, request: Request) -> Response:
        study = await run_in_threadpool(self._storage.study, request.path_params["study"])
        return StreamingResponse(_news(study), media_type="text/event-stream")


def _page_named(name: str, of_study: bool) -> Page:
    for page in PAGES:
        if page.name == name and page.of_study is of_study:
            return page
    raise HTTPException(404, "there is no such page. Begin with the list of studies.")


def _answer_named(name: str, of_study: bool) -> tuple[Answer, str]:
    """What gives an answer, and what stands for the star in its name."""
    for pattern, give in answers(of_study=of_study).items():
        head, star, tail = pattern.partition("*")
        if pattern == name:
            return give, ""
        if star and name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail):
            return give, name[len(head) : len(name) - len(tail)]
    raise HTTPException(404, "there is no such answer.")


async def _sql(request: Request) -> str:
    """The statement in the body of a request, if that is small and has one."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 4 * MOST_CHARACTERS:
            raise HTTPException(413, f"a query must have at most {MOST_CHARACTERS:,} characters.")
    try:
        sql = read_json_text(body.decode())["sql"]
    except (ValueError, KeyError, TypeError):
        raise HTTPException(400, _LIKE) from None
    if not isinstance(sql, str) or len(sql) > MOST_CHARACTERS:
        raise HTTPException(400, f"{_LIKE} It must have at most {MOST_CHARACTERS:,} characters.")
    return sql


async def _news(study: WatchedStudy) -> AsyncIterator[bytes]:
    """Events: what is new, whenever something is; a beat now and then, so that a closed page is noticed."""
    told: object = None
    silent = 0.0
    while True:
        try:
            found: object = await run_in_threadpool(study.news)
        except REFUSALS as error:
            found = {"problem": str(error)}
        if found != told:
            told, silent = found, 0.0
            yield b"data: " + to_json(found) + b"\n\n"
        elif silent >= _BEAT_SECONDS:
            silent = 0.0
            yield b": beat\n\n"
        silent += LOOK_SECONDS
        await asyncio.sleep(LOOK_SECONDS)


def _refused(request: Request, error: Exception) -> Response:
    """An error that is meant for a user, as JSON, or as text where a page was asked for."""
    is_missing = isinstance(error, UnknownStudyError | UnknownTrialError)
    return _problem(request, str(error), 404 if is_missing else 409)


def _explained(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return _problem(request, error.detail, error.status_code)


def _problem(request: Request, text: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return Response(to_json({"problem": text}), status_code=status, media_type="application/json")
    return Response(f"deltaspace: {text}\n", status_code=status, media_type="text/plain")
