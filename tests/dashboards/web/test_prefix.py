"""The dashboard below a prefix: behind a proxy that removes it, and behind one that keeps it."""

import json
import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import pytest
from support.dashboard_client import DashboardClient, dashboard_of
from support.prefix_proxy import prefix_proxy

from dashboards.errors import DashboardError
from dashboards.web.safety import AccessPolicy

PREFIX = "/user/me%40lab/proxy/8392"
HUB = "https://hub.example"
TOKEN = "a-secret-of-the-team"
QUERY = {"method": "POST", "body": json.dumps({"sql": "select 1"}), "Content_Type": "application/json"}
EMPTY_NOTE = {"method": "POST", "body": "{}", "Content_Type": "application/json"}
"""The application answers it with 400, so the storage that the tests share stays as it is."""


@pytest.fixture(scope="module", params=[True, False], ids=["stripped", "kept"])
def proxied(sample_storage: str, request: pytest.FixtureRequest) -> Iterator[DashboardClient]:
    policy = AccessPolicy(token=TOKEN, root_path=f"{PREFIX}/", allowed_origins=(HUB,))
    with (
        dashboard_of(sample_storage, policy) as behind,
        prefix_proxy(behind.host, PREFIX, strips=request.param) as origin,
    ):
        yield DashboardClient(origin)


@pytest.fixture(scope="module")
def cookie(proxied: DashboardClient) -> str:
    return proxied.ask(f"{PREFIX}/?token={TOKEN}").headers["set-cookie"].split(";")[0]


@pytest.mark.parametrize("page", ["", "query/", "studies/1/", "studies/1/leaderboard/", "studies/1/trial/"])
def test_links_scripts_and_data_stay_below_the_prefix(proxied: DashboardClient, cookie: str, page: str) -> None:
    answer = proxied.ask(f"{PREFIX}/{page}", Cookie=cookie)
    assert answer.status == 200
    text = answer.body.decode()
    (api,) = re.findall(r'data-api="([^"]+)"', text)
    data = f"{api}trials.json" if "studies" in page else f"{api}studies.json"
    links = [*re.findall(r'(?:href|src)="([^"#]+)"', text), data]
    assert len(links) > 6
    for link in links:
        path = urljoin(f"{PREFIX}/{page}", link)
        assert path.startswith(f"{PREFIX}/"), link
        assert proxied.ask(path, Cookie=cookie).status == 200, link


def test_scripts_name_no_absolute_path(proxied: DashboardClient, cookie: str) -> None:
    for name in ("start", "data", "remarks", "parts", "pages/query", "pages/studies", "pages/task"):
        script = proxied.ask(f"{PREFIX}/static/{name}.js", Cookie=cookie).body.decode()
        assert not re.findall(r"""["'`]/[a-z]""", script)


def test_token_link_sets_a_cookie_for_the_prefix(proxied: DashboardClient) -> None:
    answer = proxied.ask(f"{PREFIX}/studies/1/?pick=3&token={TOKEN}")
    target = urljoin(f"{PREFIX}/studies/1/", answer.headers["location"])
    assert (answer.status, target) == (303, f"{PREFIX}/studies/1/?pick=3")
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert f"Path={PREFIX}" in attributes
    assert proxied.ask(target, Cookie=cookie).status == 200


def test_page_without_its_slash_redirects_below_the_prefix(proxied: DashboardClient, cookie: str) -> None:
    answer = proxied.ask(f"{PREFIX}/studies/1?pick=3", Cookie=cookie)
    assert answer.status == 307
    assert urljoin(f"{PREFIX}/studies/1", answer.headers["location"]) == f"{PREFIX}/studies/1/?pick=3"


def test_prefix_without_its_slash_redirects_to_the_pages(sample_storage: str) -> None:
    with dashboard_of(sample_storage, AccessPolicy(root_path=PREFIX)) as asker:
        answer = asker.ask(f"{PREFIX}?a=b")
    assert answer.status == 303
    assert urljoin(PREFIX, answer.headers["location"]) == f"{PREFIX}/?a=b"


def test_allowed_origin_queries_and_writes_and_others_do_not(proxied: DashboardClient, cookie: str) -> None:
    query, notes = f"{PREFIX}/api/query.json", f"{PREFIX}/api/studies/1/annotations.json"
    for origin in (HUB, "HTTPS://Hub.example:443"):
        assert proxied.ask(query, Origin=origin, Cookie=cookie, **QUERY).json["rows"] == [[1]]
        assert proxied.ask(notes, Origin=origin, Cookie=cookie, **EMPTY_NOTE).status == 400
    for origin in ("https://evil.example", "http://hub.example", f"{HUB}:8443", f"{HUB}.evil.example", "null"):
        assert proxied.ask(query, Origin=origin, Cookie=cookie, **QUERY).status == 403
        assert proxied.ask(notes, Origin=origin, Cookie=cookie, **EMPTY_NOTE).status == 403
    refusal = proxied.ask(query, Origin="https://other.example", Cookie=cookie, **QUERY).body.decode()
    assert "start it with --allow-origin https://other.example." in refusal
    assert proxied.ask(query, Origin=HUB, **QUERY).status == 401


def test_host_of_an_allowed_origin_is_answered_and_others_are_not(sample_storage: str) -> None:
    policy = AccessPolicy(allowed_origins=("https://hub.example:8443", "http://[fe80::1]"))
    with dashboard_of(sample_storage, policy) as asker:
        for host in ("hub.example:8443", "HUB.example", "[fe80::1]"):
            assert asker.ask("/", Host=host).status == 200
        for host in ("evil.example", "hub.example.evil.example", "sub.hub.example", ""):
            assert asker.ask("/", Host=host).status in (400, 421)
        assert "--allow-origin https://a.example." in asker.ask("/", Host="a.example").body.decode()
        crossed = {"Host": "hub.example:8443", "Origin": "http://hub.example:8443"}
        assert asker.ask("/api/query.json", **crossed, **QUERY).status == 403


def test_prefix_and_origin_grant_no_other_access(sample_storage: str) -> None:
    with dashboard_of(sample_storage, AccessPolicy(root_path=PREFIX, read_only=True)) as asker:
        for prefix in ("", PREFIX):
            note = f"{prefix}/api/studies/1/annotations.json"
            assert asker.ask(note, **EMPTY_NOTE).status == 403
            assert asker.ask(note, Host="hub.example", **EMPTY_NOTE).status == 421
            assert asker.ask(f"{prefix}/api/query.json", Origin=HUB, **QUERY).status == 403
            assert asker.ask(f"{prefix}/api/studies.json", method="POST").status == 405
            assert asker.ask(f"{prefix}/api/studies.json", Sec_Fetch_Site="cross-site").status == 403
        assert asker.ask(f"{PREFIX}x/").status == 404
        assert asker.ask(f"{PREFIX}{PREFIX}/").status == 404


def test_dashboards_below_two_prefixes_share_no_cookie(sample_storage: str) -> None:
    tokens = {"/user/a/proxy/1": "the-token-of-one", "/user/a/proxy/12": "the-token-of-two"}
    for prefix, token in tokens.items():
        with dashboard_of(sample_storage, AccessPolicy(root_path=prefix, token=token)) as asker:
            first = asker.ask(f"{prefix}/?token={token}").headers["set-cookie"]
            assert f"; Path={prefix};" in first
            both = "; ".join(f"deltaspace_token={one}" for one in tokens.values())
            assert asker.ask("/", Cookie=both).status == 200
            (other,) = {*tokens.values()} - {token}
            assert asker.ask("/", Cookie=f"deltaspace_token={other}").status == 401


def test_token_with_odd_characters_returns_from_its_cookie(sample_storage: str) -> None:
    token = 'a secret; of "the" team, ä'
    with dashboard_of(sample_storage, AccessPolicy(token=token)) as asker:
        answer = asker.ask("/?token=a+secret%3B+of+%22the%22+team,+%C3%A4")
        cookie = answer.headers["set-cookie"].split("; ")[0]
        assert asker.ask("/", Cookie=cookie).status == 200


@pytest.mark.parametrize(
    "path",
    ["x", "user/me", "//evil.example", "/a b", "/a;Path=/", "/a?b", "/a#b", "/a/../b", "/.", "/ä", "/a\n", "/%4"],
)
def test_bad_root_path_is_refused(path: str) -> None:
    begins = "begin with '/'" if not path.startswith("/") else "be the path of an address, encoded"
    with pytest.raises(DashboardError, match=re.escape(f"--root-path must {begins}; got {path!r}. Give the path")):
        AccessPolicy(root_path=path)


def test_root_path_of_an_own_folder_is_refused() -> None:
    with pytest.raises(DashboardError, match=r"must not begin with the dashboard's own /api, .*; got '/static/x'"):
        AccessPolicy(root_path="/static/x")


@pytest.mark.parametrize(
    "origin",
    ["hub.example", "*", "null", "", "ftp://hub", f"{HUB}/", f"{HUB}/a", f"{HUB}:x", "https://a@b", "https://"],
)
def test_bad_origin_is_refused(origin: str) -> None:
    with pytest.raises(
        DashboardError, match=re.escape(f"--allow-origin must be scheme://host[:port]; got {origin!r}. Give the start")
    ):
        AccessPolicy(allowed_origins=(origin,))


@pytest.mark.parametrize("path", ["/", "/user/me/proxy/8392", "/a/", "/a.b/~c/@d/e=f", "/me%40lab"])
def test_root_path_never_ends_in_a_slash_in_addresses(path: str) -> None:
    policy = AccessPolicy(root_path=path)
    assert urlsplit(policy.path_of("studies/1/")).path == f"{path.rstrip('/')}/studies/1/"
