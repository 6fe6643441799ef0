"""``deltaspace dashboard``, and the server of a launch: their output, and refused clients."""

import json
import socket
import time
from types import SimpleNamespace

import pytest
from support.dashboard_client import DashboardClient

import dashboards.web.server
import deltaspace.commands.dashboard
from dashboards.web.safety import AccessPolicy
from dashboards.web.server import dashboard_process
from deltaspace.commands.main import main

TOKEN = "a-secret-of-the-team"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Record the storage, port and token of the server instead of serving."""
    found = SimpleNamespace()

    def serve(url: str, policy: AccessPolicy, listener: socket.socket, query_url: str = "") -> None:
        found.url, found.port, found.token = url, listener.getsockname()[1], policy.token
        found.query_url = query_url
        listener.close()

    monkeypatch.setattr(dashboards.web.server, "serve", serve)
    return found


def test_the_address_is_printed(served, sample_storage, capsys):
    assert main(["dashboard", "--storage", sample_storage, "--port", "0"]) == 0
    assert served.url == sample_storage
    assert capsys.readouterr().out == f"http://127.0.0.1:{served.port}/\n"


def test_queries_may_have_a_role_of_their_own(served, sample_storage):
    assert main(["dashboard", "--storage", sample_storage, "--port", "0", "--query-storage", "postgresql://r@h/d"]) == 0
    assert (served.url, served.query_url) == (sample_storage, "postgresql://r@h/d")


def test_a_study_opens_on_its_page(served, sample_storage, capsys):
    assert main(["dashboard", "sample", "--storage", sample_storage, "--port", "0"]) == 0
    assert capsys.readouterr().out == f"http://127.0.0.1:{served.port}/studies/1/\n"
    assert main(["dashboard", "simple", "--storage", sample_storage]) == 2
    assert "no study 'simple'" in capsys.readouterr().err


def test_browser_is_opened_on_request(served, sample_storage, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["dashboard", "--storage", sample_storage, "--port", "0"]) == 0
    assert opened == []
    assert main(["dashboard", "--storage", sample_storage, "--port", "0", "--open"]) == 0
    assert opened == [f"http://127.0.0.1:{served.port}/"]


def test_another_address_needs_a_token(served, sample_storage, capsys, monkeypatch):
    arguments = ["dashboard", "--storage", sample_storage, "--port", "0", "--host", "0.0.0.0"]
    assert main(arguments) == 2
    assert "must have a token; got --host 0.0.0.0 alone. Set DELTASPACE_TOKEN=" in capsys.readouterr().err
    monkeypatch.setenv("DELTASPACE_TOKEN", TOKEN)
    assert main(arguments) == 0
    assert served.token == TOKEN
    assert capsys.readouterr().out == f"http://{socket.gethostname()}:{served.port}/?token={TOKEN}\n"


def test_addresses_behind_a_proxy_are_printed(served, sample_storage, capsys):
    options = ["--root-path", "/user/me/proxy/8392/", "--allow-origin", "https://hub.example", "--token", TOKEN]
    assert main(["dashboard", "sample", "--storage", sample_storage, "--port", "0", *options]) == 0
    printed = capsys.readouterr()
    path = f"/user/me/proxy/8392/studies/1/?token={TOKEN}"
    assert printed.out == f"http://127.0.0.1:{served.port}{path}\n"
    assert f"behind the proxy: https://hub.example{path}\n" in printed.err


def test_bad_values_of_a_proxy_are_refused_in_a_line(served, sample_storage, capsys):
    assert main(["dashboard", "--storage", sample_storage, "--root-path", "x"]) == 2
    assert "deltaspace: --root-path must begin with '/'; got 'x'. " in capsys.readouterr().err
    assert main(["dashboard", "--storage", sample_storage, "--allow-origin", "hub.example"]) == 2
    refusal = capsys.readouterr().err
    assert "deltaspace: --allow-origin must be scheme://host[:port]; got 'hub.example'. " in refusal
    assert refusal.count("\n") == 1


def test_taken_port_is_reported(sample_storage, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dashboard", "--storage", sample_storage, "--port", str(port)]) == 1
    assert f"cannot listen on 127.0.0.1 port {port}: " in capsys.readouterr().err


def test_missing_package_is_reported(sample_storage, capsys, monkeypatch):
    monkeypatch.setattr(deltaspace.commands.dashboard, "find_spec", lambda name: None if name == "plotly" else name)
    assert main(["dashboard", "--storage", sample_storage]) == 1
    assert "needs plotly; not installed. Run: pip install 'deltaspace[dashboard]'" in capsys.readouterr().err


def test_a_study_is_written_to_a_new_folder(sample_storage, tmp_path, capsys):
    folder = tmp_path / "site"
    arguments = ["dashboard", "sample", "--storage", sample_storage, "--export", str(folder)]
    assert main(arguments) == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert f"wrote {len(files)} files" in capsys.readouterr().err
    trials = json.loads((folder / "api" / "trials.json").read_text())
    assert len(trials["trials"]["rows"]) == 6
    assert [
        json.loads((folder / "api" / "trials" / f"{number}.json").read_text())["number"] for number in range(6)
    ] == [*range(6)]
    assert main(arguments) == 2
    assert "must be new or empty" in capsys.readouterr().err
    assert main(["dashboard", "--storage", sample_storage, "--export", str(tmp_path / "other")]) == 2


def answers(address: str) -> bool:
    try:
        return DashboardClient(address).ask("/api/studies.json").status == 200
    except OSError:
        return False


@pytest.mark.slow
def test_process_of_a_launch_serves_until_it_ends(sample_storage):
    with dashboard_process(sample_storage, port=0) as address:
        end = time.monotonic() + 60
        while not answers(address) and time.monotonic() < end:
            time.sleep(0.1)
        assert answers(address)
    assert not answers(address)
