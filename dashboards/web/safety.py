"""Access control of the dashboard, and the restrictions that its pages put on the browser.

A page of another site can make a browser send requests to any address, this machine's included. Every request therefore
passes three checks. The `Host` header must be a name of the dashboard (DNS rebinding). The page that sends it must have
its origin. Two paths alone accept changes. An address that other machines reach also requires a token.
"""

import asyncio
import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards.errors import DashboardRequestError

MIN_TOKEN_LENGTH: Final = 16
"""Smallest number of characters of a token."""

QUERY_PATH = "/api/query.json"
"""Path of SQL queries, which are read-only."""

ANNOTATION_PATH = "/api/studies/{study:key}/annotations.json"
"""Path of notes, tags and requests to stop."""

MAINTENANCE_PATH = "/api/studies/{study:key}/maintenance.json"
"""Path that renames and deletes studies."""

_WRITING_PATH = re.compile("/api/studies/[0-9]{1,15}/(?:annotations|maintenance)[.]json")
_COOKIE = "deltaspace_token"
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{1,5})?")
_ORIGIN = re.compile(rf"https?://{_HOST.pattern}")
_DEFAULT_PORT = re.compile(r"(?<=^http)(://.*):80$|(?<=^https)(://.*):443$")
_ROOT_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[0-9A-Za-z._~!$&'()*+=:@-]|%[0-9A-Fa-f]{2})+)*/?")
_OWN_FOLDERS = ("api", "query", "static", "studies", "task")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Plotly sets styles of single elements, which cannot run scripts.
_POLICY = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPolicy:
    """Address of the dashboard, and the requests that it accepts there.

    Attributes:
        host: Address to bind.
        token: Secret that every request must carry; empty for none.
        read_only: Whether notes, tags, requests to stop, new names and deletions are refused.
        root_path: Path below which a proxy serves the dashboard, as the browser shows it; empty for none. Requests are
            accepted with it and without it, since some proxies remove it.
        allowed_origins: Origins besides the dashboard's own whose pages may send requests, and whose hosts it answers
            to: those of the proxies before it.

    Raises:
        DashboardError: If other machines could send requests without a token, the token is short, or a value is no
            path or no origin.
    """

    host: str = "127.0.0.1"
    token: str = ""
    read_only: bool = False
    root_path: str = ""
    allowed_origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the attributes."""
        if self.token and len(self.token) < MIN_TOKEN_LENGTH:
            raise DashboardRequestError(
                f"a token must have at least {MIN_TOKEN_LENGTH} characters; got {len(self.token)}. "
                f"Set DELTASPACE_TOKEN={secrets.token_urlsafe(MIN_TOKEN_LENGTH)}"
            )
        if not self.is_loopback and not self.token:
            raise DashboardRequestError(
                f"an address that other machines reach must have a token; got --host {self.host} alone. "
                f"Set DELTASPACE_TOKEN={secrets.token_urlsafe(MIN_TOKEN_LENGTH)}"
            )
        if self.root_path:
            _check_root_path(self.root_path)
        for origin in self.allowed_origins:
            if not _ORIGIN.fullmatch(origin.lower()):
                raise DashboardRequestError(
                    f"--allow-origin must be scheme://host[:port]; got {origin!r}. "
                    "Give the start of the address in the browser, such as https://hub.example."
                )

    @property
    def is_loopback(self) -> bool:
        """Whether the address is reachable from this machine only."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def prefix(self) -> str:
        """Form of `root_path` in cookies and addresses, without a slash at its end."""
        return self.root_path.rstrip("/")

    def accepts_host(self, host: str) -> bool:
        """Return whether a `Host` header names the dashboard, or a proxy of an allowed origin."""
        name = _host_name(host)
        return self._is_own_name(name) or any(name == urlsplit(one.lower()).hostname for one in self.allowed_origins)

    def accepts_origin(self, origin: str, host: str) -> bool:
        """Return whether a page may send requests, given its origin and the `Host` header."""
        origin, host = _without_default_port(origin), host.lower()
        if self._is_own_name(_host_name(host)) and origin in (f"http://{host}", f"https://{host}"):
            return True
        return origin in map(_without_default_port, self.allowed_origins)

    def accepts_token(self, token: str) -> bool:
        """Return whether a token is the right one, or none is required."""
        return not self.token or hmac.compare_digest(token.encode(), self.token.encode())

    def path_of(self, page: str) -> str:
        """Return the path of a page after the origin, with prefix and token."""
        return f"{self.prefix}/{page}{f'?token={self.token}' if self.token else ''}"

    def route_of(self, path: str) -> str:
        """Return a request's path without the prefix, if a proxy left it there; empty for the prefix itself."""
        prefix = unquote(self.prefix)
        return path[len(prefix) :] if path == prefix or path.startswith(f"{prefix}/") else path

    def _is_own_name(self, name: str) -> bool:
        """Return whether a name is this machine's.

        If bound to all addresses, every IP address is accepted: DNS rebinding needs a name.
        """
        if name in (*_LOOPBACK, self.host.lower()):
            return True
        if self.is_loopback:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (socket.gethostname().lower(), socket.getfqdn().lower())
        return True


def _check_root_path(path: str) -> None:
    example = "Give the path before the dashboard's own in the browser, such as /user/me/proxy/8392."
    if not path.startswith("/"):
        raise DashboardRequestError(f"--root-path must begin with '/'; got {path!r}. {example}")
    if not _ROOT_PATH.fullmatch(path):
        raise DashboardRequestError(f"--root-path must be the path of an address, encoded; got {path!r}. {example}")
    if path.split("/")[1] in _OWN_FOLDERS:
        own = ", ".join(f"/{name}" for name in _OWN_FOLDERS)
        raise DashboardRequestError(
            f"--root-path must not begin with the dashboard's own {own}; got {path!r}. {example}"
        )


def _without_default_port(origin: str) -> str:
    return _DEFAULT_PORT.sub(r"\1\2", origin.lower())


def _host_name(host: str) -> str:
    """Return the name in ``name:port``, without the brackets of an IPv6 address; empty for anything else."""
    match = _HOST.fullmatch(host)
    return (match["address"] or match["name"]).lower() if match else ""


class AccessMiddleware:
    """ASGI middleware that refuses requests before the application handles them, and sets the security headers."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy) -> None:
        """Wrap an application."""
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it to the application without the prefix."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = self._policy.route_of(scope["path"])
        scope = {**scope, "path": path}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _POLICY.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if path.startswith("/static/") else "no-store"
            await send(message)

        response = self._early_response(scope, Headers(scope=scope))
        with suppress(ClientDisconnect):  # the client has gone, or never sent the whole request
            try:
                await (self._app if response is None else response)(scope, receive, send_with_headers)
            except asyncio.CancelledError:  # Ctrl-C
                await _refusal(503, "the dashboard has ended. Start it again.")(scope, receive, send_with_headers)

    def _early_response(self, scope: Scope, headers: Headers) -> Response | None:
        """Return a refusal or a redirect; None for a request that the application handles."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._policy.accepts_host(hosts[0]):
            name = next((f" https://{host}" for host in hosts if _HOST.fullmatch(host)), "=…")
            way = f"Open the address that it printed; behind a proxy, start it with --allow-origin{name}."
            return _refusal(421, f"this name is not one of the dashboard's. {way}")
        if not self._is_trusted_page(scope, headers, hosts[0]):
            origin = headers.get("origin", "")
            name = f" {origin}" if _ORIGIN.fullmatch(origin) else "=…"
            way = f"Open the address that the dashboard printed; behind a proxy, start it with --allow-origin{name}."
            return _refusal(403, f"a page of another site must not send requests. {way}")
        is_writing = _WRITING_PATH.fullmatch(scope["path"]) is not None
        allowed = ("POST",) if is_writing or scope["path"] == QUERY_PATH else ("GET", "HEAD")
        if scope["method"] not in allowed:
            return _refusal(405, f"the method here must be {' or '.join(allowed)}; got {scope['method']}.")
        if is_writing and self._policy.read_only:
            return _refusal(403, "cannot write: the dashboard is read-only. Start it without --read-only.")
        given = parse_qs(scope["query_string"].decode("latin-1"))
        if self._policy.token:
            if "token" in given and scope["method"] == "GET" and self._policy.accepts_token(given.pop("token")[0]):
                return self._with_cookie(self._redirect(scope["path"], given))
            if not self._has_token(headers):
                return _refusal(401, "a token is required. Open the address with ?token=… as the dashboard printed it.")
        return self._redirect("", given) if self._policy.prefix and not scope["path"] else None

    def _is_trusted_page(self, scope: Scope, headers: Headers, host: str) -> bool:
        """Return whether the request comes from a page of the dashboard or from a followed link."""
        origin = headers.get("origin")
        if origin is not None:
            return self._policy.accepts_origin(origin, host)
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        is_page = not scope["path"].startswith("/api/")
        return headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (is_visit and is_page)

    def _has_token(self, headers: Headers) -> bool:
        """Return whether the header or any cookie has the token: browsers also send cookies of shorter prefixes."""
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        return any(self._policy.accepts_token(token) for token in (bearer, *_cookie_tokens(headers)) if token)

    def _redirect(self, path: str, query: dict[str, list[str]]) -> Response:
        """Redirect to a path's own last part: relative, so that it holds behind every proxy."""
        name = quote(path.rpartition("/")[2]) if path else f"{self._policy.prefix.rpartition('/')[2]}/"
        return RedirectResponse(f"./{name}{'?' if query else ''}{urlencode(query, doseq=True)}", status_code=303)

    def _with_cookie(self, response: Response) -> Response:
        """Store the token in a cookie of the prefix, so that no address, history or link has it."""
        path = self._policy.prefix or "/"
        response.set_cookie(_COOKIE, self._policy.token, httponly=True, samesite="strict", path=path)
        return response


def _cookie_tokens(headers: Headers) -> Iterator[str]:
    for cookie in headers.get("cookie", "").split(";"):
        with suppress(CookieError):
            morsel = SimpleCookie(cookie).get(_COOKIE)
            yield "" if morsel is None else morsel.value


def _refusal(status: int, why: str) -> Response:
    return PlainTextResponse(f"deltaspace: {why}\n", status_code=status)
