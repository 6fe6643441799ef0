"""End of a launch in the driver: the study's state is read once the last worker has left."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import RayActorError, RayTaskError

from studies.backends import driver, keeper_actor, keeper_monitor
from studies.backends.keeper_monitor import KeeperWatch
from studies.errors import FencedError, LaunchError, StudiesError
from studies.runtime.progress import LaunchStatus

DAMAGED = LaunchError("the weights of the backbone must be readable; got a damaged file.")


class SlowKeeper:
    """Actor that answers a call some looks later, from its state at the call; and the Ray around it."""

    def __init__(self) -> None:
        self.halted: StudiesError | None = None
        self.at_finish: Exception | None = None
        self.looks: dict[int, int] = {}
        self.answers: dict[int, Any] = {}
        self.called: list[str] = []
        self.ping = SimpleNamespace(remote=lambda stop: self._call_id(("", {})))
        self.call = SimpleNamespace(remote=self._call)

    def _call(self, method: str, *given: object) -> int:
        self.called.append(method)
        if method == "finish":
            return self._call_id(self.at_finish)
        progress: Any = SimpleNamespace(ended=8, target_trials=8, running=())
        done = self.halted is None
        return self._call_id(
            LaunchStatus(progress=progress, is_done=done, exhausted="", drained="", halted=self.halted, silent=())
        )

    def _call_id(self, answer: Any) -> int:
        self.answers[len(self.answers)] = answer
        return len(self.answers) - 1

    def wait(self, calls: list[int], *, timeout: float) -> tuple[list[int], list[int]]:
        self.looks[calls[0]] = self.looks.get(calls[0], 0) + 1
        return (calls, []) if self.looks[calls[0]] > 2 else ([], calls)

    def get(self, call: int, *, timeout: None) -> Any:
        if isinstance(self.answers[call], Exception):
            raise self.answers[call]
        return self.answers[call]


@pytest.fixture
def keeper(monkeypatch: pytest.MonkeyPatch) -> SlowKeeper:
    """Return a keeper whose workers leave after a look."""
    keeper = SlowKeeper()
    monkeypatch.setattr(keeper_monitor, "ray", keeper)
    monkeypatch.setattr(keeper_actor, "ray", keeper)
    monkeypatch.setattr(driver, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(driver, "wait", lambda fleets, seconds: fleets[0].set_result(None))
    return keeper


def watched(keeper: SlowKeeper) -> LaunchStatus:
    plan: Any = SimpleNamespace(lease_seconds=60.0, patience_seconds=60.0)
    connection: Any = SimpleNamespace(poll=lambda: False, send=lambda message: None)
    return driver.watch_over(Future(), KeeperWatch(keeper, plan), connection, lambda: "")


def test_exit_reason_of_the_last_worker_is_reported(keeper, monkeypatch):
    def leave(fleets: list[Future[object]], seconds: float) -> None:
        keeper.halted = DAMAGED
        fleets[0].set_result(None)

    monkeypatch.setattr(driver, "wait", leave)
    status = watched(keeper)
    assert status.halted is DAMAGED
    assert "finish" not in keeper.called


def test_a_launch_that_came_to_its_end_is_noted(keeper):
    assert watched(keeper).is_done
    assert keeper.called.count("finish") == 1


def test_keeper_fenced_at_the_end_raises_the_error(keeper):
    fenced = FencedError("study 'trivial' was taken over.")
    keeper.at_finish = RayTaskError("finish", "", fenced)
    with pytest.raises(FencedError, match="was taken over"):
        watched(keeper)


def test_keeper_lost_at_the_end_leaves_the_study_done(keeper):
    keeper.at_finish = RayActorError()
    assert watched(keeper).is_done


def test_slow_start_of_ray_is_retried_and_other_errors_are_not(monkeypatch, tmp_path):
    errors = [Exception("The current node timed out during startup."), OSError("no space left")]
    begun = list(errors)

    def start(*_: object, **__: object) -> None:
        raise begun.pop(0)

    monkeypatch.setattr(driver.ray, "init", start)
    order: Any = SimpleNamespace(address=None, cores=2, options=SimpleNamespace(workers="auto"), folder=tmp_path)
    with pytest.raises(OSError, match="no space left"):
        driver.start_ray(order)
    begun = [errors[0]] * 5
    with pytest.raises(Exception, match="timed out"):
        driver.start_ray(order)
    assert len(begun) == 2
