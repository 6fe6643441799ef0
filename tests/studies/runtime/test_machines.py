"""Losses of machines: they count against no trial, and workers on a leaving machine are stopped."""

import pytest

from studies.errors import LaunchError
from studies.runtime.keeper import MAX_CRASHES
from studies.runtime.roster import MAX_LOSSES


class PlantedMachines:
    """Machines whose state a test sets."""

    def __init__(self) -> None:
        self.gone: set[str] = set()
        self.leaving: set[str] = set()

    def is_gone(self, worker: str) -> bool:
        return worker in self.gone

    def is_leaving(self, worker: str) -> bool:
        return worker in self.leaving


@pytest.fixture
def machines() -> PlantedMachines:
    return PlantedMachines()


def test_lost_machines_never_fail_a_trial(storage_url, begin, machines):
    study = begin(storage_url, machines=machines)
    keeper = study.keeper
    for number in range(MAX_LOSSES + 2):
        keeper.join(f"w/{number}")
        (request,) = keeper.exchange(f"w/{number}", (), 1).requests
        assert (request.trial, request.attempt) == (0, number + 1)
        machines.gone.add(f"w/{number}")
    keeper.join("w/last")
    assert (study.states, study.losses) == (["queued"], {})


def test_losses_on_machines_that_live_fail_a_trial_also_among_others(begin, machines):
    study = begin(machines=machines)
    keeper = study.keeper
    for number in range(2 * MAX_LOSSES):
        assert "failed" not in study.states
        keeper.join(f"w/{number}")
        keeper.exchange(f"w/{number}", (), 1)
        if number % 2:
            machines.gone.add(f"w/{number}")
    keeper.join("w/last")
    assert study.states[0] == "failed"


def test_worker_on_a_leaving_machine_is_replaced(begin, machines):
    keeper = begin(machines=machines).keeper
    keeper.join("w/1")
    assert keeper.exchange("w/1", (), 1).requests
    assert not keeper.heartbeat("w/1")
    machines.leaving.add("w/1")
    assert keeper.heartbeat("w/1")
    answer = keeper.exchange("w/1", (), 1)
    assert (answer.is_over, answer.requests) == (True, ())
    assert keeper.must_move("w/1")
    keeper.join("w/2")
    assert not keeper.exchange("w/2", (), 1).is_over
    keeper.drain("enough")
    assert not keeper.must_move("w/1")


def test_workers_that_are_lost_in_loading_again_and_again_end_the_launch(begin, machines):
    keeper = begin(machines=machines).keeper
    for number in range(MAX_CRASHES):
        keeper.join(f"w/{number}")
    with pytest.raises(LaunchError, match="5 workers in a row were lost while loading, perhaps out of memory"):
        keeper.join("w/last")


def test_loading_losses_exclude_busy_and_machine_lost_workers(begin, machines):
    keeper = begin(target_trials=40, machines=machines).keeper
    for number in range(2 * MAX_CRASHES):
        keeper.join(f"w/{number}")
        machines.gone.add(f"w/{number}")
    for number in range(2 * MAX_CRASHES):
        keeper.join(f"v/{number}")
        if number % (MAX_CRASHES - 1) == 0:
            keeper.exchange(f"v/{number}", (), 1)
    assert keeper.status().halted is None
