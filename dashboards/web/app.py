"""The addresses of the dashboard: pages, answers, files."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dashboards.jsonable import to_json
from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.cache.study import REFUSALS
from dashboards.web.page_html import STATIC, plotly_folder, rendered
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Answer, Page, PageRequest
from dashboards.web.pages.query import MOST_CHARACTERS, answer
from dashboards.web.safety import ANNOTATION_PATH, QUERY_PATH, AccessMiddleware, AccessPolicy
from studies.errors import UnknownStudyError, UnknownTrialError
from studies.records import EventKind


class _Query(BaseModel):
    """What is asked of the database."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sql: str = Field(max_length=MOST_CHARACTERS)


class _Remark(BaseModel):
    """What a person says of a trial, or of the study: a note, tags with commas between them, or that it is to stop."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal[EventKind.NOTE, EventKind.TAGS, EventKind.STOP]
    trial: Annotated[int, Field(strict=True, ge=0, lt=1 << 31)] | None = None
    text: str = Field(default="", max_length=MOST_CHARACTERS)


Body = TypeVar("Body", bound=BaseModel)
_QUERIES_AT_ONCE = 3
"""Further queries wait for these, and no page does."""


class _Key(IntegerConvertor):
    """The key of a study: so many digits that a number is read of them at once."""

    regex = "[0-9]{1,15}"


register_url_convertor("key", _Key())


class Dashboard:
    """Answers what the pages ask of a storage."""

    def __init__(self, storage: WatchedStorage) -> None:
        """Answer of a storage, which need not be there yet."""
        self._storage = storage
        self._may_write = False
        self._queries = anyio.CapacityLimiter(_QUERIES_AT_ONCE)

    def application(self, policy: AccessPolicy) -> Starlette:
        """The addresses."""
        self._may_write = not policy.read_only
        return Starlette(
            routes=[
                Route(QUERY_PATH, self._query, methods=["POST"]),
                Route(ANNOTATION_PATH, self._annotate, methods=["POST"]),
                *(route for page in PAGES for route in self._routes(page)),
                Mount("/static/plotly", StaticFiles(directory=plotly_folder())),
                Mount("/static", StaticFiles(directory=STATIC)),
                Route("/{path:path}", _missing),
            ],
            middleware=[Middleware(AccessMiddleware, policy=policy)],
            exception_handlers={HTTPException: _explained, **dict.fromkeys(REFUSALS, _refused)},
        )

    def _routes(self, page: Page) -> Iterator[Route]:
        """Where a page is, and where what it asks for."""
        study = "studies/{study:key}/" if page.of_study else ""
        name = "" if page.name in ("studies", "live") else f"{page.name}/"
        yield Route(f"/{study}{name}", partial(self._page, page))
        for pattern, give in page.answers.items():
            yield Route(f"/api/{study}{pattern.replace('*', '{star:path}')}", partial(self._data, give))

    async def _page(self, page: Page, request: Request) -> Response:
        key = request.path_params.get("study")
        study = None if key is None else (await run_in_threadpool(self._storage.study, key)).record
        return HTMLResponse(rendered(page, study, is_live=True, may_write=self._may_write))

    async def _data(self, give: Answer, request: Request) -> Response:
        key = request.path_params.get("study")
        given = {**request.query_params, "*": request.path_params.get("star", "")}

        def work() -> bytes:
            study = None if key is None else self._storage.study(key)
            return to_json(give(PageRequest(storage=self._storage, watched=study, given=given)))

        return Response(await run_in_threadpool(work), media_type="application/json")

    async def _query(self, request: Request) -> Response:
        asked = await _body(request, _Query, '{"sql": "select …"}')
        found = await anyio.to_thread.run_sync(answer, self._storage.url, asked.sql, limiter=self._queries)
        return Response(to_json(found), media_type="application/json")

    async def _annotate(self, request: Request) -> Response:
        said = await _body(request, _Remark, '{"kind": "note", "trial": 3, "text": "…"}')
        study = await run_in_threadpool(self._storage.study, request.path_params["study"])
        await run_in_threadpool(self._storage.annotate, study, said.kind, said.text, said.trial)
        return Response(to_json({"said": said.kind}), media_type="application/json")


async def _missing(request: Request) -> Response:
    """Redirect a page's address without its last slash, relative to it; refuse all others."""
    path = request.url.path
    is_page = not path.startswith("/api/")
    name = path.rpartition("/")[2]
    if is_page and name and not path.startswith("/static/"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"./{quote(name)}/{query}", status_code=307)
    text = "there is no such page. Begin with the list of studies." if is_page else "there is no such answer."
    raise HTTPException(404, text)


async def _body(request: Request, kind: type[Body], example: str) -> Body:
    """The body of a request, if that is small and what it must be."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, f"what is asked comes as application/json, like {example}.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 4 * MOST_CHARACTERS:
            raise HTTPException(413, f"a text must have at most {MOST_CHARACTERS:,} characters.")
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        must = f"what is asked must look like {example}, with at most {MOST_CHARACTERS:,} characters."
        raise HTTPException(400, must) from None


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
