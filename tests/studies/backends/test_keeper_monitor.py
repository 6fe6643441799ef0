"""The keeper as the driver watches it: one that never answers ends the launch, whatever Ray says instead."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import ActorDiedError, RayActorError

from studies.backends import keeper_actor, keeper_monitor
from studies.backends.keeper_monitor import KeeperWatch
from studies.errors import LaunchError

LOOKS = 2000


class LostKeeper:
    """Lost actor, and the Ray that reports its loss at once."""

    def __init__(self, error: RayActorError) -> None:
        self.error = error
        self.kills = 0
        self.ping = self.call = self

    def remote(self, *given: object) -> object:
        return object()

    def wait(self, calls: list[object], *, timeout: float) -> tuple[list[object], list[object]]:
        return calls, []

    def get(self, call: object, *, timeout: None) -> Any:
        raise self.error

    def kill(self, actor: object, *, no_restart: bool) -> None:
        self.kills += 1


@pytest.fixture
def look(monkeypatch):
    """Watch a lost keeper until that raises, or for long; count its replacements."""

    def look(error: RayActorError) -> LostKeeper:
        keeper = LostKeeper(error)
        monkeypatch.setattr(keeper_monitor, "ray", keeper)
        monkeypatch.setattr(keeper_actor, "ray", keeper)
        monkeypatch.setattr(keeper_monitor, "BEGIN_SECONDS", 0.02)
        plan: Any = SimpleNamespace(lease_seconds=0.02, patience_seconds=0.02)
        watch = KeeperWatch(keeper, plan)
        for _ in range(LOOKS):
            watch.poll()
            time.sleep(0.001)
        return keeper

    return look


def test_a_keeper_that_is_lost_again_and_again_ends_the_launch(look):
    with pytest.raises(LaunchError, match="the keeper did not respond after 3 replacements"):
        look(RayActorError())


def test_keeper_start_failure_ends_launch_with_its_last_line(look):
    error = ActorDiedError()
    error._actor_init_failed = True
    error.error_msg = "The actor died:\n  Traceback\nModuleNotFoundError: No module named 'studies'\n"
    with pytest.raises(LaunchError) as ended:
        look(error)
    assert str(ended.value) == (
        "cannot start the keeper where Ray places it: ModuleNotFoundError: No module named 'studies'. "
        "Every machine of the cluster needs deltaspace, of one version."
    )
