"""Which Ray a launch uses, and who is let in to one of its own."""

import os
import socket
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studies.backends.tune import _environment, cluster_address
from studies.errors import LaunchError
from studies.study_file.sections import Fleet


@pytest.mark.parametrize("address", ["", "local"])
def test_without_an_address_a_launch_has_a_ray_of_its_own_that_lets_nobody_in(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert cluster_address() is None
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(LaunchError, match="got RAY_AUTH_MODE=disabled"):
        cluster_address()


def test_an_address_where_somebody_answers_is_taken(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert cluster_address() == address
    with pytest.raises(LaunchError, match=f"nobody answers at {address}") as ended:
        cluster_address()
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize("address", ["ray://10.0.0.1:10001", "http://10.0.0.1:8265"])
def test_an_address_for_machines_outside_the_cluster_is_refused(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(LaunchError, match="must be HOST:PORT or auto"):
        cluster_address()


def settings(folder: Path, address: str | None) -> dict[str, str]:
    order: Any = SimpleNamespace(cores=4, options=Fleet(workers=2), asked_threads=None, address=address, folder=folder)
    return _environment(order)


def test_workers_have_memory_in_large_pages_unless_the_user_says_what_their_c_library_is_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert settings(tmp_path, "10.0.0.1:6379")["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0")
    assert "GLIBC_TUNABLES" not in settings(tmp_path, "10.0.0.1:6379"), "theirs stands"


def test_a_ray_of_its_own_asks_for_a_token_that_only_this_user_can_read(tmp_path, monkeypatch):
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    before = os.umask(0)
    try:
        found = settings(tmp_path, None)
    finally:
        os.umask(before)
    token = Path(found["RAY_AUTH_TOKEN_PATH"])
    assert (found["RAY_AUTH_MODE"], found["RAY_AUTH_TOKEN"], found["OMP_NUM_THREADS"]) == ("token", "", "2")
    assert (stat.S_IMODE(token.stat().st_mode), len(token.read_text()), token.parent) == (0o600, 64, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert Path(settings(other, None)["RAY_AUTH_TOKEN_PATH"]).read_text() != token.read_text()


def test_the_token_of_a_cluster_is_its_users(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/theirs")
    assert not {"RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"} & settings(tmp_path, "10.0.0.1:6379").keys()
    assert list(tmp_path.iterdir()) == []
