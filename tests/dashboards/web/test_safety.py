"""Access to a dashboard, and its security headers."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urljoin, urlsplit

import pytest
from starlette.testclient import TestClient
from support.dashboard_client import DashboardClient, dashboard_of

from dashboards.errors import DashboardError
from dashboards.web import server
from dashboards.web.safety import MIN_TOKEN_LENGTH, AccessMiddleware, AccessPolicy

TOKEN = "a-secret-of-the-team"
PAGES = ("/", "/query/", "/studies/1/", "/studies/1/leaderboard/", "/api/studies.json", "/static/start.js")


@pytest.fixture(scope="module")
def asker(sample_storage: str) -> Iterator[DashboardClient]:
    with dashboard_of(sample_storage) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(sample_storage: str) -> Iterator[DashboardClient]:
    with dashboard_of(sample_storage, AccessPolicy(token=TOKEN)) as found:
        yield found


@pytest.mark.parametrize(
    "half",
    [
        "",
        "GET / HTTP/1.1\r\nHost: local",
        "POST /api/query.json HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 99\r\n\r\n{",
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_is_not_sent_whole_is_not_waited_for(
    sample_storage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, half: str
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    with dashboard_of(sample_storage) as found, socket.create_connection(found.host.split(":"), timeout=60) as waiting:
        waiting.sendall(half.encode())
        while waiting.recv(1 << 16):
            pass
    assert not caplog.records


def test_a_request_that_ctrl_c_ends_is_answered() -> None:
    async def ended(*_: object) -> None:
        raise asyncio.CancelledError

    answer = TestClient(AccessMiddleware(ended, AccessPolicy()), base_url="http://localhost").get("/")
    assert (answer.status_code, answer.text) == (503, "deltaspace: the dashboard has ended. Start it again.\n")


class _Closed(logging.NullHandler):
    """Handler of another library that closes its own stream, as absl's does."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True
        super().close()


def test_a_server_leaves_the_logging_of_its_process(sample_storage: str) -> None:
    handler = _Closed()
    with dashboard_of(sample_storage) as found:
        assert found.ask("/").status == 200
    assert not handler.is_closed


def test_of_too_many_half_sent_requests_the_oldest_are_closed(
    sample_storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1e6)
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 4)
    with dashboard_of(sample_storage) as found, ExitStack() as stack:
        waiting = [stack.enter_context(socket.create_connection(found.host.split(":"), timeout=60)) for _ in range(7)]
        assert [one.recv(1) for one in waiting[:3]] == [b"", b"", b""]
        assert found.ask("/").status == 200
        assert waiting[3].recv(1) == b""
        waiting[6].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert waiting[6].recv(8) == b"HTTP/1.1"


@pytest.mark.parametrize("path", PAGES)
def test_every_address_answers_its_own_machine(asker: DashboardClient, path: str) -> None:
    assert asker.ask(path).status == 200


FOREIGN = ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.1.7", "", "["]
PRETENDED = ["x@localhost", "127.0.0.1/evil", "[::1]evil"]


@pytest.mark.parametrize("host", FOREIGN + PRETENDED)
def test_a_foreign_name_of_the_machine_is_refused(asker: DashboardClient, host: str) -> None:
    answer = asker.ask("/api/studies.json", Host=host)
    assert answer.status in (400, 421)
    assert b"sample" not in answer.body


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:9", "LOCALHOST:5"])
def test_own_names_of_the_machine_are_accepted(asker: DashboardClient, host: str) -> None:
    assert asker.ask("/api/studies.json", Host=host).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:9", "file://", "http://["])
@pytest.mark.parametrize("path", ["/", "/api/studies.json", "/api/query.json"])
def test_a_foreign_page_may_not_ask(asker: DashboardClient, origin: str, path: str) -> None:
    method = "POST" if path == "/api/query.json" else "GET"
    assert asker.ask(path, method=method, body="{}", Origin=origin).status == 403


def test_our_own_page_may_ask(asker: DashboardClient) -> None:
    assert asker.ask("/api/studies.json", Origin=f"http://{asker.host}").status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_foreign_page_may_link_to_a_page_but_take_no_data(asker: DashboardClient, site: str) -> None:
    visit = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert asker.ask("/studies/1/", **visit).status == 200
    assert asker.ask("/api/studies.json", **visit).status == 403
    assert asker.ask("/studies/1/", Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
    assert asker.ask("/studies/1/", **{**visit, "Sec_Fetch_Dest": "iframe"}).status == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_writing_methods_are_refused(asker: DashboardClient, method: str) -> None:
    assert asker.ask("/api/studies.json", method=method).status == 405
    assert asker.ask("/studies/1/", method=method).status == 405


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("/api/studies/1/annotations.json", '{"kind": "note", "text": "odd"}'),
        ("/api/studies/1/maintenance.json", '{"kind": "delete", "name": "sample"}'),
    ],
)
def test_only_own_page_writes_unless_read_only(sample_storage: str, path: str, note: str) -> None:
    as_json = {"method": "POST", "body": note, "Content_Type": "application/json"}
    with dashboard_of(sample_storage, AccessPolicy(read_only=True)) as found:
        assert found.ask(path, **as_json).status == 403
        assert 'data-write="no"' in found.ask("/studies/1/").body.decode()
    with dashboard_of(sample_storage, AccessPolicy(token=TOKEN)) as found:
        assert found.ask(path, **as_json).status == 401
    with dashboard_of(sample_storage) as found:
        assert found.ask(path, Origin="http://evil.example", **as_json).status == 403
        assert found.ask(path, Sec_Fetch_Site="cross-site", **as_json).status == 403
        assert found.ask(path, **{**as_json, "Content_Type": "text/plain"}).status == 415
        assert found.ask(path).status == 405
        assert found.ask("/api/studies/1/trials.json").json["annotations"] == []


@pytest.mark.parametrize("path", [*PAGES, "/nothing/", "/api/nothing.json"])
def test_every_answer_forbids_scripts_of_its_own(asker: DashboardClient, path: str) -> None:
    headers = asker.ask(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_pages_hold_no_script_and_no_style_of_their_own(asker: DashboardClient) -> None:
    for path in PAGES[:4]:
        text = asker.ask(path).body.decode()
        assert "<style" not in text
        assert 'style="' not in text
        assert all(part.startswith(' src="') for part in text.split("<script")[1:])


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.org"])
def test_an_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(DashboardError, match="must have a token"):
        AccessPolicy(host=host)
    assert not AccessPolicy(host=host, token=TOKEN).is_loopback


def test_a_token_must_be_long() -> None:
    with pytest.raises(DashboardError, match=f"at least {MIN_TOKEN_LENGTH} characters; got 5"):
        AccessPolicy(token="short")


def test_on_all_addresses_only_ip_hosts_are_accepted() -> None:
    policy = AccessPolicy(host="0.0.0.0", token=TOKEN)
    assert policy.accepts_host("192.168.1.7:8088")
    assert policy.accepts_host("[fe80::1]:8088")
    assert not policy.accepts_host("evil.example:8088")
    assert not AccessPolicy().accepts_host("192.168.1.7:8088")


@pytest.mark.parametrize("host", ["x@localhost", "127.0.0.1/evil", "[::1]evil", "localhost:x", "", "localhost?"])
def test_a_host_that_is_more_than_a_name_and_a_port_is_not_ours(host: str) -> None:
    assert not AccessPolicy().accepts_host(host)
    assert AccessPolicy().accepts_host("LOCALHOST:8088")
    assert AccessPolicy().accepts_host("[::1]:8088")


def test_requests_without_the_token_are_refused(guarded: DashboardClient) -> None:
    for path in PAGES:
        answer = guarded.ask(path)
        assert answer.status == 401
        assert b"sample" not in answer.body
    assert guarded.ask("/api/studies.json", Authorization="Bearer wrong").status == 401
    assert guarded.ask("/?token=wrong").status == 401
    assert guarded.ask("/", Cookie="deltaspace_token=wrong; ;;=").status == 401


def test_the_token_of_the_address_becomes_a_cookie(guarded: DashboardClient) -> None:
    answer = guarded.ask(f"/studies/1/?pick=3&token={TOKEN}")
    assert answer.status == 303
    assert answer.headers["location"] == "./?pick=3"
    assert TOKEN in answer.headers["set-cookie"]
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert guarded.ask("/api/studies.json", Cookie=cookie).json["studies"][0]["name"] == "sample"


def test_token_redirect_stays_on_this_host(guarded: DashboardClient) -> None:
    for path in (
        "//evil.example/",
        "//evil.example",
        "/https://evil.example",
        "/%5C%5Cevil.example",
        "/.//evil.example",
    ):
        target = guarded.ask(f"{path}?token={TOKEN}").headers["location"]
        assert target.startswith("./")
        assert urlsplit(urljoin(f"http://{guarded.host}{path}", target)).netloc == guarded.host


def test_a_program_gives_the_token_as_a_header(guarded: DashboardClient) -> None:
    assert guarded.ask("/api/studies.json", Authorization=f"Bearer {TOKEN}").status == 200
