"""A dashboard that a thread serves, asked without a browser."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dashboards.web.safety import Door
from dashboards.web.server import serving


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Asker:
    """Asks a dashboard."""

    address: str

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def ask(self, path: str, *, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        """Ask once; headers by their names with underscores."""
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
def dashboard_of(url: str, door: Door | None = None) -> Iterator[Asker]:
    with serving(url, door) as address:
        yield Asker(address)
