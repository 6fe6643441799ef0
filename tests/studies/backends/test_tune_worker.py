"""A worker as Ray Tune runs it: of one that gets no further nothing is heard, and one that leaves says why."""

import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from studies.backends import tune_worker
from studies.backends.tune_worker import MOVES, Home, PackTrainable
from studies.errors import FencedError


class Pulse:
    """A keeper that counts beats; and the moments between them, at which things happen."""

    def __init__(self) -> None:
        self.beats = self.meetings = 0
        self.is_to_leave = self.is_to_move = False

    def meet(self, worker: str) -> None:
        self.meetings += 1

    def heartbeat(self, worker: str) -> bool:
        self.beats += 1
        return self.is_to_leave

    def must_move(self, worker: str) -> bool:
        return self.is_to_move


@pytest.fixture
def pulse() -> Pulse:
    return Pulse()


@pytest.fixture
def trainable(pulse: Pulse) -> Any:
    """A worker that has begun just now, and is stuck after 100 s."""
    one: Any = object.__new__(PackTrainable)
    one._name, one._keeper = "w/1", pulse
    one._stuck_seconds, one._lease_seconds, one._began_at = 100.0, 60.0, time.monotonic()
    one._worker = SimpleNamespace(moved_at=time.monotonic(), work=lambda seconds: True)
    one._is_leaving = threading.Event()
    return one


def beat(trainable: Any, moments: list[Callable[[], object]]) -> None:
    """Let something happen before each beat, then close."""

    def wait(seconds: float) -> Iterator[bool]:
        for moment in moments:
            moment()
            yield False
        yield True

    waits = wait(0.0)
    trainable._is_closed = SimpleNamespace(wait=lambda seconds: next(waits))
    trainable._beat()


def set_moved(trainable: Any, seconds_ago: float) -> Callable[[], None]:
    def move() -> None:
        trainable._worker.moved_at = time.monotonic() - seconds_ago

    return move


def test_nothing_is_heard_of_a_worker_that_is_stuck_until_it_gets_on(trainable, pulse):
    heard = []
    fine, stuck = set_moved(trainable, 1.0), set_moved(trainable, 101.0)
    look = lambda: heard.append(pulse.beats)  # noqa: E731
    beat(trainable, [fine, stuck, lambda: (look(), stuck()), lambda: (look(), fine()), look])
    assert heard == [1, 1, 2]
    assert pulse.beats == 3


@pytest.mark.parametrize(
    ("answers_in", "pauses"),
    [(0.001, [1.0, 1.0, 1.0]), (0.1, [1.0, 5.0, 5.0]), (3.0, [1.0, 10.0, 10.0])],
)
def test_a_busy_keeper_hears_it_less_often_but_six_times_in_a_lease(trainable, pulse, monkeypatch, answers_in, pauses):
    now, asked, real = [time.monotonic()], [], pulse.heartbeat

    def answer(worker):
        now[0] += answers_in
        return real(worker)

    monkeypatch.setattr(tune_worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(pulse, "heartbeat", answer)
    trainable._is_closed = SimpleNamespace(wait=lambda seconds: asked.append(seconds) or len(asked) > 2)
    trainable._beat()
    assert asked == pytest.approx(pauses)


def test_worker_reregisters_with_restarted_keeper(trainable, pulse):
    beat(trainable, [lambda: None] * 21)
    assert (pulse.beats, pulse.meetings) == (21, 3)


def test_a_worker_that_loads_for_too_long_is_stuck_too(trainable, pulse):
    trainable._worker = None
    beat(trainable, [lambda: None])
    assert pulse.beats == 1
    trainable._began_at -= 101.0
    beat(trainable, [lambda: None])
    assert pulse.beats == 1


def test_it_leaves_when_its_keeper_says_so_or_is_another(trainable, pulse):
    beat(trainable, [lambda: None])
    assert not trainable._is_leaving.is_set()
    pulse.is_to_leave = True
    beat(trainable, [lambda: None])
    assert trainable._is_leaving.is_set()
    trainable._is_leaving.clear()

    def fence(worker: str) -> bool:
        raise FencedError("the study was taken over.")

    trainable._keeper.heartbeat = fence
    beat(trainable, [lambda: None])
    assert trainable._is_leaving.is_set()


@pytest.mark.parametrize("moves", [True, False])
def test_its_last_result_says_whether_its_place_is_given_anew(trainable, pulse, moves):
    pulse.is_to_move = moves
    assert trainable.step() == {"done": True, MOVES: moves}
    trainable._worker.work = lambda seconds: False
    assert trainable.step() == {"done": False, MOVES: False}


def test_a_node_with_another_deltaspace_is_named_with_both_versions(monkeypatch):
    monkeypatch.setattr(tune_worker, "_address", lambda: "10.0.0.2")
    home = Home(keeper="k", namespace="n", node="a", mark=None)
    assert tune_worker._other_release(home) is None
    monkeypatch.setattr(tune_worker, "version", lambda name: "0.0.1")
    error = tune_worker._other_release(home)
    assert f"must have deltaspace {home.release}; got 0.0.1 on 10.0.0.2" in str(error)
