"""Leases of waiting trials."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_space.backbones import shape_of
from search_space.parameter_counts.budget import solve
from search_space.published import published_method
from studies.runtime.roster import OpenTrial, Roster

METHODS = ("lora_qv", "prefix_tuning", "lora_qv", "parallel_adapter_ffn", "prefix_tuning", "lora_qv")


@pytest.fixture
def roster(tiny_backbone: Any) -> Roster:
    """Six waiting trials, of three structures and different sizes."""
    import json

    shape = shape_of(json.loads((Path(tiny_backbone("roberta")) / "config.json").read_text()))
    roster = Roster()
    for number, name in enumerate(METHODS):
        method = published_method(name)
        configuration = solve(
            method.configuration(shape), shape, attention_share=method.attention_share, parameters=400 + 100 * number
        )
        waiting: Any = SimpleNamespace(number=number, configuration=configuration)
        roster.trials[number] = OpenTrial(trial=waiting, attempt=1)
    return roster


def test_worker_gets_trials_that_group_with_its_own(roster):
    roster.trials[1].worker = "a/1"
    assert roster.choose_queued("a/1", 1) == [4], "the other prefix, whatever its length"
    roster.trials[3].worker = "a/1"
    assert roster.choose_queued("a/1", 2) == [4, 0]


def test_trials_leased_together_group_together(roster):
    assert roster.choose_queued("b/1", 3) == [0, 2, 5]


def test_all_waiting_trials_are_leased_where_there_is_room(roster):
    assert roster.choose_queued("b/1", 6) == roster.choose_queued("b/1", 9) == [0, 1, 2, 3, 4, 5]
    assert roster.choose_queued("b/1", 0) == roster.choose_queued("b/1", -2) == []


def test_the_last_trials_are_shared_between_the_workers(roster):
    assert roster.fair_share(5) == 5, "nobody else is there"
    for worker in ("a/1", "b/1"):
        roster.register(worker, 0.0, 0.0)
    assert [roster.fair_share(waiting) for waiting in (0, 1, 2, 3, 8)] == [0, 1, 1, 2, 4]
    roster.forget("b/1")
    assert roster.fair_share(3) == 3
