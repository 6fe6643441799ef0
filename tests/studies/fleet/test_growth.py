"""The fleet as Tune sees it: it grows with its cluster, gives places anew that moved, and ends with a first worker."""

from types import SimpleNamespace
from typing import Any

import pytest

from studies.errors import LaunchError
from studies.fleet.growth import Failures, Growth
from studies.fleet.places import Node, Share
from studies.fleet.tune_worker import MOVES


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Node]:
    """Those of the cluster; tests add to them."""
    found: list[Node] = []
    monkeypatch.setattr("studies.fleet.nodes.Nodes.staying", property(lambda self: tuple(found)))
    return found


def one(key: str) -> Node:
    return Node(key=key, address="10.0.0.1", cpus=2, gpus=0)


def places(growth: Growth) -> list[str]:
    """What is given until nothing more is."""
    given = []
    while (config := growth.searcher.searcher.suggest("t")) is not None:
        given.append(config["place"])
    return given


def test_a_node_that_is_added_gives_more_places(nodes):
    growth = Growth(Share(cores=1, gpus=0), None)
    assert (growth.wanted, places(growth)) == (1, ["worker-0"])  # a cluster that is still empty has something to go by
    nodes.append(one("a"))
    assert places(growth) == ["worker-1"]
    nodes.append(one("b"))
    assert places(growth) == ["worker-2", "worker-3"]
    nodes.remove(one("a"))
    assert places(growth) == []


def test_as_many_as_were_asked_for_are_asked_for_at_once(nodes):
    assert len(places(Growth(Share(cores=1, gpus=0), 5))) == 5


def test_a_worker_that_moves_is_replaced_and_one_that_is_done_ends_the_fleet(nodes):
    growth = Growth(Share(cores=1, gpus=0), 2)
    assert len(places(growth)) == 2
    growth.searcher.on_trial_complete("t", {MOVES: True})
    assert not growth.searcher.is_finished()
    assert places(growth) == ["worker-2"]
    growth.searcher.on_trial_complete("t", {MOVES: False})
    assert growth.searcher.is_finished()


def failed(failures: Failures, place: str, times: int) -> None:
    trial: Any = SimpleNamespace(config={"place": place}, get_error=lambda: "trace\nImportError: no studies.")
    for _ in range(times):
        failures.on_trial_recover(0, [trial], trial)


def test_a_place_that_never_begins_ends_the_launch_with_the_last_line_of_why():
    failures = Failures()
    failed(failures, "worker-1", 4)
    failures.check({"worker-0/a"})
    failed(failures, "worker-1", 1)
    with pytest.raises(LaunchError, match="worker-1 ended 5 times before it did: ImportError: no studies"):
        failures.check({"worker-0/a"})


def test_a_place_whose_worker_began_in_between_has_begun():
    failures = Failures()
    for incarnation in "abc":
        failed(failures, "worker-1", 4)
        failures.check({f"worker-1/{incarnation}"})
