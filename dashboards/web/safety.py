"""Who may ask, and what the browser is told to refuse.

A page of another site can make a browser ask any address, also one of this machine. So the name in the address must be
one of ours (a foreign name that was pointed at this machine is refused), the page that asks must be ours, and one
address alone takes what people write. An address that other machines reach needs a token besides.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboards.errors import DashboardWishError

MIN_TOKEN_LENGTH = 16
"""Characters of a token."""

QUERY_PATH = "/api/query.json"
"""Takes SQL to be read with."""

ANNOTATION_PATH = "/api/studies/{study:key}/annotations.json"
"""The only address that changes anything: takes notes, tags and requests to stop."""

_ANNOTATION_PATH = re.compile(ANNOTATION_PATH.replace("{study:key}", "[0-9]{1,15}"))
_COOKIE = "deltaspace_token"
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]{1,5})?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Plotly sets styles of single elements; a style moves and paints, it never runs.
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
    """Where the dashboard listens, and what it takes to come in.

    Attributes:
        host: Address to bind.
        token: What everybody who asks must know; empty for none.
        read_only: Whether what people write is refused.

    Raises:
        DashboardError: If other machines could ask without a token, or the token is too short to be one.
    """

    host: str = "127.0.0.1"
    token: str = ""
    read_only: bool = False

    def __post_init__(self) -> None:
        """Refuse an open policy."""
        if self.token and len(self.token) < MIN_TOKEN_LENGTH:
            raise DashboardWishError(
                f"a token must have at least {MIN_TOKEN_LENGTH} characters; got {len(self.token)}. "
                f"Set DELTASPACE_TOKEN={secrets.token_urlsafe(MIN_TOKEN_LENGTH)}"
            )
        if not self.is_loopback and not self.token:
            raise DashboardWishError(
                f"an address that other machines reach must have a token; got --host {self.host} alone. "
                f"Set DELTASPACE_TOKEN={secrets.token_urlsafe(MIN_TOKEN_LENGTH)}"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def is_known_host(self, host: str) -> bool:
        """Whether a name is one of ours. On every address of the machine, any number is: only names are pointed."""
        name = _host_name(host)
        if name in (*_LOOPBACK, self.host.lower()):
            return True
        if self.is_loopback:
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (socket.gethostname().lower(), socket.getfqdn().lower())
        return True

    def accepts_token(self, token: str) -> bool:
        """Whether a token is the right one, or none is asked for."""
        return not self.token or hmac.compare_digest(token.encode(), self.token.encode())


def _host_name(host: str) -> str:
    """The name in ``name:port``, without the brackets of an IPv6 address; empty for anything else."""
    found = _HOST.fullmatch(host)
    return (found["address"] or found["name"]).lower() if found else ""


class AccessMiddleware:
    """Refuses what must not be asked, before anything else looks at it."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy) -> None:
        """Stand before an application."""
        self._app = app
        self._door = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _POLICY.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if scope["path"].startswith("/static/") else "no-store"
            await send(message)

        refusal = self._refusal(scope, Headers(scope=scope))
        with suppress(ClientDisconnect):  # whoever asked has gone, or never sent the whole question
            await (self._app if refusal is None else refusal)(scope, receive, sealed)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._door.is_known_host(hosts[0]):
            return _refused(421, "this name is not one of the dashboard's. Open the address that it printed.")
        if not _is_same_origin(scope, headers, hosts[0]):
            return _refused(403, "another site's page must not ask. Open the address that the dashboard printed.")
        is_writing = _ANNOTATION_PATH.fullmatch(scope["path"]) is not None
        allowed = ("POST",) if is_writing or scope["path"] == QUERY_PATH else ("GET", "HEAD")
        if scope["method"] not in allowed:
            return _refused(405, "nothing can be changed here.")
        if is_writing and self._door.read_only:
            return _refused(403, "this dashboard only reads. Start it without --read-only.")
        return self._token_refusal(scope, headers)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._door.token:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1"))
        if "token" in given and scope["method"] == "GET" and self._door.accepts_token(given.pop("token")[0]):
            # Into a cookie, so that it stands in no address, history or link.
            target = f"{scope['path']}{'?' if given else ''}{urlencode(given, doseq=True)}"
            answer = RedirectResponse(f"/{target.lstrip('/')}", status_code=303)
            answer.set_cookie(_COOKIE, self._door.token, httponly=True, samesite="strict", path="/")
            return answer
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if any(self._door.accepts_token(token) for token in (bearer, _token_cookies(headers)) if token):
            return None
        return _refused(401, "a token is needed. Open the address with ?token=… as the dashboard printed it.")


def _is_same_origin(scope: Scope, headers: Headers, host: str) -> bool:
    """Whether our own page asks, or a person who follows a link."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")
    is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    is_page = not scope["path"].startswith("/api/")
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin") or (is_visit and is_page)


def _token_cookies(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(f"deltaspace: {why}\n", status_code=status)
