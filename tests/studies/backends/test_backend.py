"""Threads of a worker, and the user's signals."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.ray_parts import by_value
from support.trivial_launch import specification
from support.trivial_runner import TrivialRunner

from studies.backends import backend
from studies.backends.backend import Interrupts, allowed_threads, pack_size
from studies.launch.launch import launch
from studies.study_file.sections import Fleet
from trial_runner.requests import PackRunner

TESTS = Path(__file__).parents[2]


@dataclass(frozen=True)
class Counting:
    """Writes down with how many threads runners are ordered."""

    file: Path

    def __call__(self, threads: int) -> PackRunner:
        with self.file.open("a") as file:
            file.write(f"{threads}\n")
        return TrivialRunner()


@pytest.mark.parametrize(
    ("text", "threads"), [(None, None), ("", None), ("3", 3), ("2,1", 2), ("0", None), ("many", None), ("-1", None)]
)
def test_most_threads_are_those_of_omp_num_threads(text, threads, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if text is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert allowed_threads() == threads


def test_a_pack_is_of_each_shard():
    plan: Any = "nobody looks at it where the number of trials is given"
    assert pack_size(Fleet(pack=3), plan, 1) == (3, None)
    assert pack_size(Fleet(pack=3, worker={"shards": 4}), plan, 1) == (12, None)


@pytest.mark.parametrize(("text", "threads"), [(None, 4), ("1", 1), ("3", 3), ("8", 4)])
def test_inline_worker_respects_the_users_thread_limit(text, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if text is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", text)
    study = specification(tmp_path / "artefacts", "inline", 2)
    launch(study, storage_url=f"sqlite:///{tmp_path / 'ledger.db'}", factory=Counting(tmp_path / "threads"))
    assert (tmp_path / "threads").read_text().split() == [str(threads)]


@pytest.mark.slow
def test_fleet_workers_respect_the_users_thread_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS.parent), str(TESTS)]))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3, 4, 5})
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    study = specification(tmp_path / "artefacts", "ray", 2)
    launch(study, storage_url=f"sqlite:///{tmp_path / 'ledger.db'}", factory=by_value(Counting)(tmp_path / "threads"))
    assert set((tmp_path / "threads").read_text().split()) == {"2"}


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "reason", "grace"),
    [
        (signal.SIGINT, "interrupted by Ctrl-C", 30.0),
        (signal.SIGTERM, "stopped by SIGTERM", 6.0),
        (signal.SIGUSR1, "stopped by SIGUSR1", 60.0),
    ],
)
def test_the_first_signal_is_noted_with_the_time_that_it_leaves(number, reason, grace):
    with Interrupts() as noted:
        assert noted.reason == ""
        send(number)
        assert (noted.reason, noted.grace_seconds) == (reason, grace)


def test_two_in_one_breath_are_one_as_timeout_sends_them(monkeypatch):
    monkeypatch.setattr(backend, "SAME_REQUEST_SECONDS", 1e6)
    with Interrupts() as noted:
        send(signal.SIGTERM)
        send(signal.SIGTERM)
        assert noted.reason == "stopped by SIGTERM"


def test_second_signal_interrupts_at_once(monkeypatch):
    monkeypatch.setattr(backend, "SAME_REQUEST_SECONDS", 0.0)
    with Interrupts():
        send(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_signal_handlers_are_restored():
    before = signal.getsignal(signal.SIGUSR1)
    with Interrupts():
        assert signal.getsignal(signal.SIGUSR1) != before
    assert signal.getsignal(signal.SIGUSR1) == before
