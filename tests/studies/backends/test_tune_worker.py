"""A worker as Ray Tune runs it: of one that gets no further nothing is heard, and one that leaves says why."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from support.trivial_runner import TrivialRunner

from studies.backends import tune_worker
from studies.backends.tune_worker import MOVES, Heartbeats, Home, PackTrainable
from studies.errors import FencedError


class Pulse:
    """A keeper that counts beats; and the moments between them, at which things happen."""

    def __init__(self) -> None:
        self.beats = self.meetings = 0
        self.is_to_leave = self.is_to_move = False

    def register_worker(self, worker: str) -> None:
        self.meetings += 1

    def heartbeat(self, worker: str) -> bool:
        self.beats += 1
        return self.is_to_leave

    def must_move(self, worker: str) -> bool:
        return self.is_to_move

    def join(self, worker: str) -> None: ...

    def agree(self, address: str, identity: object) -> None: ...


@pytest.fixture
def pulse() -> Pulse:
    return Pulse()


@pytest.fixture
def beats(pulse: Any) -> Heartbeats:
    """Return the heartbeats of a worker that began just now and is stuck after 100 s."""
    worker: Any = SimpleNamespace(moved_at=time.monotonic())
    return Heartbeats(name="w/1", keeper=pulse, stuck_seconds=100.0, lease_seconds=60.0, worker=worker)


def beat(beats: Any, moments: list[Callable[[], object]]) -> None:
    """Let something happen before each beat, then close."""

    def wait(seconds: float) -> Iterator[bool]:
        for moment in moments:
            moment()
            yield False
        yield True

    waits = wait(0.0)
    beats.is_closed = SimpleNamespace(wait=lambda seconds: next(waits))
    beats.send()


def set_moved(beats: Any, seconds_ago: float) -> Callable[[], None]:
    def move() -> None:
        beats.worker.moved_at = time.monotonic() - seconds_ago

    return move


def test_stuck_worker_sends_no_heartbeats(beats, pulse):
    counts = []
    fine, stuck = set_moved(beats, 1.0), set_moved(beats, 101.0)
    look = lambda: counts.append(pulse.beats)  # noqa: E731
    beat(beats, [fine, stuck, lambda: (look(), stuck()), lambda: (look(), fine()), look])
    assert counts == [1, 1, 2]
    assert pulse.beats == 3


@pytest.mark.parametrize(
    ("answers_in", "pauses"),
    [(0.001, [1.0, 1.0, 1.0]), (0.1, [1.0, 5.0, 5.0]), (3.0, [1.0, 10.0, 10.0])],
)
def test_busy_keeper_gets_at_least_six_heartbeats_per_lease(beats, pulse, monkeypatch, answers_in, pauses):
    now, waits, real = [time.monotonic()], [], pulse.heartbeat

    def answer(worker):
        now[0] += answers_in
        return real(worker)

    monkeypatch.setattr(tune_worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(pulse, "heartbeat", answer)
    beats.is_closed = SimpleNamespace(wait=lambda seconds: waits.append(seconds) or len(waits) > 2)
    beats.send()
    assert waits == pytest.approx(pauses)


def test_worker_reregisters_with_restarted_keeper(beats, pulse):
    beat(beats, [lambda: None] * 21)
    assert (pulse.beats, pulse.meetings) == (21, 3)


def test_a_worker_that_loads_for_too_long_is_stuck_too(beats, pulse):
    beats.worker = None
    beat(beats, [lambda: None])
    assert pulse.beats == 1
    beats.began_at -= 101.0
    beat(beats, [lambda: None])
    assert pulse.beats == 1


def test_worker_leaves_on_request_or_when_fenced(beats, pulse):
    beat(beats, [lambda: None])
    assert not beats.is_leaving.is_set()
    pulse.is_to_leave = True
    beat(beats, [lambda: None])
    assert beats.is_leaving.is_set()
    beats.is_leaving.clear()

    def fence(worker: str) -> bool:
        raise FencedError("the study was taken over.")

    beats.keeper.heartbeat = fence
    beat(beats, [lambda: None])
    assert beats.is_leaving.is_set()


@pytest.fixture
def trainable(pulse: Pulse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PackTrainable]]:
    """Build workers as Tune does, whose work ends at once or never."""
    made: list[PackTrainable] = []
    monkeypatch.setattr(ray, "get_actor", lambda name, namespace: None)
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.2")
    monkeypatch.setattr(tune_worker, "KeeperClient", lambda actor: pulse)

    def new(*, is_over: bool) -> PackTrainable:
        worker = SimpleNamespace(moved_at=0.0, work=lambda seconds: is_over)
        monkeypatch.setattr(tune_worker, "PackWorker", lambda **_: worker)
        one = object.__new__(PackTrainable)
        one.setup(
            {"place": "w"},
            plan=SimpleNamespace(stuck_seconds=100.0, lease_seconds=60.0, artefacts=Path("artefacts")),
            factory=lambda threads: TrivialRunner(),
            slots=1,
            fitting=None,
            snapshot_seconds=60.0,
            threads=1,
            home=Home(keeper="k", namespace="n", node="a", mark=None),
        )
        made.append(one)
        return one

    yield new
    for one in made:
        one.cleanup()


@pytest.mark.parametrize("moves", [True, False])
def test_last_result_contains_whether_the_place_moves(trainable, pulse, moves):
    pulse.is_to_move = moves
    assert trainable(is_over=True).step() == {"done": True, MOVES: moves}
    assert trainable(is_over=False).step() == {"done": False, MOVES: False}


def test_a_node_with_another_deltaspace_is_named_with_both_versions(monkeypatch):
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.2")
    home = Home(keeper="k", namespace="n", node="a", mark=None)
    assert tune_worker.other_release(home) is None
    monkeypatch.setattr(tune_worker, "version", lambda name: "0.0.1")
    error = tune_worker.other_release(home)
    assert f"must have deltaspace {home.release}; got 0.0.1 on 10.0.0.2" in str(error)
