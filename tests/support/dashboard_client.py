"""Dashboard that a thread serves, and an HTTP client for it."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dashboards.web.cache.storage import WatchedStorage
from dashboards.web.safety import AccessPolicy
from dashboards.web.server import bind_socket, create_server, dashboard_url


@dataclass(frozen=True)
class Answer:
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class DashboardClient:
    """HTTP client of a dashboard."""

    address: str

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(self, path: str, *, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """Send one request; header names have underscores."""
        link = http.client.HTTPConnection(self.host, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            link.request(method, path, body, given)
            answer = link.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            link.close()

    def query(self, sql: str) -> Answer:
        body = json.dumps({"sql": sql})
        return self.ask("/api/query.json", method="POST", body=body, Content_Type="application/json")


@contextmanager
def serving(url: str, policy: AccessPolicy | None = None, query_url: str = "") -> Iterator[str]:
    """Serve a dashboard in a thread of this process and yield its address."""
    policy = policy or AccessPolicy()
    listener = bind_socket(policy, 0)
    storage = WatchedStorage(url, query_url)
    server = create_server(storage, policy)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        yield dashboard_url(policy, listener)
    finally:
        server.should_exit = True
        thread.join()
        storage.close()


@contextmanager
def dashboard_of(url: str, policy: AccessPolicy | None = None, query_url: str = "") -> Iterator[DashboardClient]:
    with serving(url, policy, query_url) as address:
        yield DashboardClient(address)
