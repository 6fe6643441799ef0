"""Routes of the dashboard: pages, data, files."""

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
from dashboards.web.page_html import STATIC, plotly_folder, render_page
from dashboards.web.pages import PAGES
from dashboards.web.pages.page import Answer, Page, PageRequest
from dashboards.web.pages.query import MOST_CHARACTERS, run_sql
from dashboards.web.safety import ANNOTATION_PATH, MAINTENANCE_PATH, QUERY_PATH, AccessMiddleware, AccessPolicy
from studies.errors import UnknownStudyError, UnknownTrialError
from studies.records import EventKind


class _Query(BaseModel):
    """Body of an SQL query."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sql: str = Field(max_length=MOST_CHARACTERS)


class _Remark(BaseModel):
    """Body of an annotation of a trial or of the study: a note, comma-separated tags, or a request to stop."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal[EventKind.NOTE, EventKind.TAGS, EventKind.STOP]
    trial: Annotated[int, Field(strict=True, ge=0, lt=1 << 31)] | None = None
    text: str = Field(default="", max_length=MOST_CHARACTERS)
    known: str | None = Field(default=None, max_length=MOST_CHARACTERS)


class _Maintenance(BaseModel):
    """Body of a renaming or deletion, with the study's name as a guard against mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["rename", "delete"]
    name: str
    to: str | None = None


Body = TypeVar("Body", bound=BaseModel)
_QUERIES_AT_ONCE = 3
"""Number of concurrent SQL queries; further ones wait, pages do not."""


class _Key(IntegerConvertor):
    """Key of a study in a path, with few enough digits for a 64-bit integer."""

    regex = "[0-9]{1,15}"


register_url_convertor("key", _Key())


class Dashboard:
    """Request handlers for one storage."""

    def __init__(self, storage: WatchedStorage) -> None:
        """Serve a storage, which need not exist yet."""
        self._storage = storage
        self._may_write = False
        self._queries = anyio.CapacityLimiter(_QUERIES_AT_ONCE)

    def application(self, policy: AccessPolicy) -> Starlette:
        """Build the ASGI application with its routes."""
        self._may_write = not policy.read_only
        return Starlette(
            routes=[
                Route(QUERY_PATH, self._query, methods=["POST"]),
                Route(ANNOTATION_PATH, self._annotate, methods=["POST"]),
                Route(MAINTENANCE_PATH, self._maintain, methods=["POST"]),
                *(route for page in PAGES for route in self._routes(page)),
                Mount("/static/plotly", StaticFiles(directory=plotly_folder())),
                Mount("/static", StaticFiles(directory=STATIC)),
                Route("/{path:path}", _missing),
            ],
            middleware=[Middleware(AccessMiddleware, policy=policy)],
            exception_handlers={HTTPException: _http_error, **dict.fromkeys(REFUSALS, _domain_error)},
        )

    def _routes(self, page: Page) -> Iterator[Route]:
        """Yield the routes of a page and of the data that it requests."""
        study = "studies/{study:key}/" if page.of_study else ""
        name = "" if page.name in ("studies", "live") else f"{page.name}/"
        yield Route(f"/{study}{name}", partial(self._page, page))
        for pattern, function in page.answers.items():
            yield Route(f"/api/{study}{pattern.replace('*', '{star:path}')}", partial(self._data, function))

    async def _page(self, page: Page, request: Request) -> Response:
        key = request.path_params.get("study")
        study = None if key is None else (await run_in_threadpool(self._storage.study, key)).record
        return HTMLResponse(render_page(page, study, is_live=True, may_write=self._may_write))

    async def _data(self, function: Answer, request: Request) -> Response:
        key = request.path_params.get("study")
        parameters = {**request.query_params, "*": request.path_params.get("star", "")}

        def respond() -> bytes:
            study = None if key is None else self._storage.study(key)
            return to_json(function(PageRequest(storage=self._storage, watched=study, given=parameters)))

        return Response(await run_in_threadpool(respond), media_type="application/json")

    async def _query(self, request: Request) -> Response:
        query = await _body(request, _Query, '{"sql": "select …"}')
        result = await anyio.to_thread.run_sync(run_sql, self._storage.query_url, query.sql, limiter=self._queries)
        return Response(to_json(result), media_type="application/json")

    async def _annotate(self, request: Request) -> Response:
        remark = await _body(request, _Remark, '{"kind": "note", "trial": 3, "text": "…"}')
        study = await run_in_threadpool(self._storage.study, request.path_params["study"])
        await run_in_threadpool(self._storage.annotate, study, remark.kind, remark.text, remark.trial, remark.known)
        return Response(to_json({"said": remark.kind}), media_type="application/json")

    async def _maintain(self, request: Request) -> Response:
        example = '{"kind": "rename", "name": "docstrings", "to": "other"} or {"kind": "delete", "name": "docstrings"}'
        change = await _body(request, _Maintenance, example)
        if (change.kind == "rename") != (change.to is not None):
            raise HTTPException(400, f"the body must be like {example}.")
        key = request.path_params["study"]
        left = await run_in_threadpool(self._storage.maintain, key, change.name, change.to)
        return Response(to_json({"left": left}), media_type="application/json")


async def _missing(request: Request) -> Response:
    """Redirect a page's address without its last slash, relative to it; refuse all others."""
    path = request.url.path
    is_page = not path.startswith("/api/")
    name = path.rpartition("/")[2]
    if is_page and name and not path.startswith("/static/"):
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"./{quote(name)}/{query}", status_code=307)
    text = "no such page. Start at the list of studies." if is_page else "no such data."
    raise HTTPException(404, text)


async def _body(request: Request, kind: type[Body], example: str) -> Body:
    """Read and validate the JSON body of a request, up to a size."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise HTTPException(415, f"the Content-Type must be application/json, with a body such as {example}.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > 4 * MOST_CHARACTERS:
            raise HTTPException(413, f"a body must have at most {4 * MOST_CHARACTERS:,} bytes.")
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        must = f"the body must be like {example}, with at most {MOST_CHARACTERS:,} characters."
        raise HTTPException(400, must) from None


def _domain_error(request: Request, error: Exception) -> Response:
    """Respond with a user-facing error: JSON to requests of data, plain text to requests of pages."""
    is_missing = isinstance(error, UnknownStudyError | UnknownTrialError)
    return _error_response(request, str(error), 404 if is_missing else 409)


def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return _error_response(request, error.detail, error.status_code)


def _error_response(request: Request, text: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return Response(to_json({"problem": text}), status_code=status, media_type="application/json")
    return Response(f"deltaspace: {text}\n", status_code=status, media_type="text/plain")
