"""Leases of waiting trials."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_space.backbones import shape_of
from search_space.parameter_counts.budget import solve
from search_space.published import published_method
from studies.runtime.roster import Lease, Roster

METHODS = ("lora_qv", "prefix_tuning", "lora_qv", "parallel_adapter_ffn", "prefix_tuning", "lora_qv")


@pytest.fixture(scope="module")
def history(tiny_backbone: Any) -> list[Any]:
    """Six trials, of three structures and different sizes."""
    import json

    shape = shape_of(json.loads((Path(tiny_backbone("roberta")) / "config.json").read_text()))
    trials = []
    for number, name in enumerate(METHODS):
        method = published_method(name)
        configuration = solve(
            method.configuration(shape), shape, attention_share=method.attention_share, parameters=400 + 100 * number
        )
        trials.append(SimpleNamespace(number=number, configuration=configuration))
    return trials


@pytest.fixture
def roster() -> Roster:
    """Six waiting trials."""
    return Roster(leases={number: Lease(trial=number, attempt=1) for number in range(len(METHODS))})


def test_worker_gets_trials_that_group_with_its_own(roster, history):
    roster.leases[1].worker = "a/1"
    assert roster.choose_queued("a/1", 1, history) == [4], "the other prefix, whatever its length"
    roster.leases[3].worker = "a/1"
    assert roster.choose_queued("a/1", 2, history) == [4, 0]


def test_trials_leased_together_group_together(roster, history):
    assert roster.choose_queued("b/1", 3, history) == [0, 2, 5]


def test_all_waiting_trials_are_leased_where_there_is_room(roster, history):
    assert roster.choose_queued("b/1", 6, history) == roster.choose_queued("b/1", 9, history) == [0, 1, 2, 3, 4, 5]
    assert roster.choose_queued("b/1", 0, history) == roster.choose_queued("b/1", -2, history) == []


def test_the_last_trials_are_shared_between_the_workers(roster):
    assert roster.fair_share(5) == 5, "nobody else is there"
    for worker in ("a/1", "b/1"):
        roster.register(worker, 0.0, 0.0)
    assert [roster.fair_share(waiting) for waiting in (0, 1, 2, 3, 8)] == [0, 1, 1, 2, 4]
    roster.forget("b/1")
    assert roster.fair_share(3) == 3
