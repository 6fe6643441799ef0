"""The fleet on Ray: which Ray it is, what cannot start, and a trial that kills its worker and fails alone."""

import os
import socket
import stat
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.ray_parts import by_value
from support.small_study import small_study
from support.trivial_runner import TrivialRunner

from studies.backends import tune
from studies.backends.tune import cluster_address, driver_environment
from studies.errors import LaunchError
from studies.launch.execution import LaunchResult
from studies.launch.launch import launch
from studies.ledger.ledger import Ledger
from studies.records import TrialRecord
from studies.study_file.sections import Fleet
from trial_runner.errors import BackboneError
from trial_runner.requests import PackRunner, TrialRequest

TESTS = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def importable_by_workers(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))


def launched(tmp_path: Path, factory: object) -> LaunchResult:
    fleet = {"backend": "ray", "pack": 1, "workers": 2}
    search = {"sampler": "random", "published": "none"}
    study = small_study(tmp_path, trials=6, steps=8, first_rung=None, search=search, fleet=fleet)
    return launch(study, storage_url=f"sqlite:///{tmp_path / 'ledger.db'}", factory=factory)  # type: ignore[arg-type]


def trials_of(tmp_path: Path) -> list[TrialRecord]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.db'}", read_only=True) as ledger:
        return ledger.trials(ledger.study("trivial").id)


def no_backbone(threads: int) -> PackRunner:
    raise BackboneError("the weights of the backbone must be readable; got a damaged file.")


def no_sense(threads: int) -> PackRunner:
    raise ValueError("this is a bug")


def kill_at_trial_2(request: TrialRequest, step: int) -> None:
    if request.trial == 2:
        os._exit(1)


@dataclass(frozen=True)
class Poisoned:
    """Trial 2 takes its worker's process down."""

    def __call__(self, threads: int) -> PackRunner:
        return TrivialRunner(on_step=kill_at_trial_2)


@pytest.mark.parametrize(("last", "message"), [("a damaged file", "a damaged file"), ("", "its gcs_server was lost")])
def test_last_message_arrives_after_driver_and_ray_are_gone(monkeypatch, last, message):
    """Test that a message is delivered after its sender has ended, as on a busy machine."""
    received = iter([{"gcs_server": 1}, *[None] * 5, LaunchError(last) if last else "end"])

    def receive(seconds: float) -> Any:
        word = next(received)
        if word == "end":
            raise EOFError
        return word

    monkeypatch.setattr(tune, "start_of", lambda pid: None)
    # it was still ending when its Ray was gone
    driver: Any = SimpleNamespace(receive=receive, exit_code=lambda seconds: 0 if seconds > 1 else None)
    order: Any = SimpleNamespace(plan=SimpleNamespace(lease_seconds=60.0), address=None)
    watch: Any = SimpleNamespace(is_due=lambda: False, reason_to_stop=lambda: "")
    ledger: Any = None  # nothing is read from it
    with pytest.raises(LaunchError, match=message):
        tune.Supervisor(driver, order, watch, ledger).run()


@pytest.mark.slow
def test_a_backbone_that_workers_cannot_load_ends_the_launch_with_one_line(tmp_path):
    with pytest.raises(LaunchError, match="must be readable; got a damaged file") as ended:
        launched(tmp_path, by_value(no_backbone))
    assert "\n" not in str(ended.value)
    assert trials_of(tmp_path) == []


@pytest.mark.slow
def test_workers_that_crash_again_and_again_end_the_launch(tmp_path):
    with pytest.raises(LaunchError, match="crashed 5 times in a row; the last error: ValueError: this is a bug"):
        launched(tmp_path, by_value(no_sense))


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_fails_alone(tmp_path):
    by_value(kill_at_trial_2)
    assert launched(tmp_path, Poisoned()).finished
    trials = trials_of(tmp_path)
    assert [trial.state.value for trial in trials] == ["complete"] * 2 + ["failed"] + ["complete"] * 3
    assert trials[2].reason is not None
    assert "lost 3 times in a row without a reading" in trials[2].reason


@pytest.mark.parametrize("address", ["", "local", " ", "\r", "local\r\n"])
def test_launch_without_address_starts_private_ray(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert cluster_address() is None
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(LaunchError, match="got RAY_AUTH_MODE=disabled"):
        cluster_address()


def test_reachable_ray_address_is_used(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        for around in ("", "\r", " \n"):
            monkeypatch.setenv("RAY_ADDRESS", f"{address}{around}")
            assert cluster_address() == address
    with pytest.raises(LaunchError, match=f"nobody answers at {address}") as ended:
        cluster_address()
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    "address",
    [
        *("ray://10.0.0.1:10001", "http://10.0.0.1:8265", "garbage", "host", ":6379", "host:", "a b:1", "a\rb:6379"),
        *("host:99999", "host:0", "host:-1", "host:six", "::1:6379", "user@host:6379", "AUTO"),
    ],
)
def test_address_that_is_no_host_and_port_is_refused(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(LaunchError, match="must be HOST:PORT or auto") as caught:
        cluster_address()
    assert "\n" not in str(caught.value)
    assert "\r" not in str(caught.value)


@pytest.mark.parametrize("host", ["[::1]", f"{'a' * 70}.invalid", "a..b"])
def test_host_without_an_answer_is_one_sentence(monkeypatch, host):
    monkeypatch.setenv("RAY_ADDRESS", f"{host}:1")
    with pytest.raises(LaunchError, match="RAY_ADDRESS must name a Ray that runs; nobody answers at"):
        cluster_address()


def settings(folder: Path, address: str | None) -> dict[str, str]:
    order: Any = SimpleNamespace(
        cores=4, options=Fleet(workers=2), allowed_threads=None, address=address, folder=folder
    )
    return driver_environment(order)


def test_workers_use_large_pages_unless_malloc_is_configured(tmp_path, monkeypatch):
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
