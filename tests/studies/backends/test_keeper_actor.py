"""Imports of the processes of a launch: none that only the keeper needs."""

from typing import Any, cast

import pytest
from support.processes import printed_by

from studies.backends.keeper_actor import KeeperActor, KeeperClient
from studies.errors import LaunchError
from studies.runtime.study_plan import StudyPlan

HEAVY = {"optuna", "scipy", "torch"}
OF_THE_KEEPER = HEAVY | {"sqlalchemy", "transformers", "studies.runtime.keeper"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("studies.backends.tune_worker", OF_THE_KEEPER),
        ("studies.backends.driver", OF_THE_KEEPER),
        ("studies.launch.launch", HEAVY),
    ],
)
def test_processes_other_than_the_keeper_load_no_sampler(module, heavy):
    """Test that imports of the keeper, half a second or more, do not delay the other processes."""
    script = f"import sys, {module}; sys.exit(', '.join({heavy} & set(sys.modules)) or None)"
    printed_by("-W", "ignore", "-c", script)


def test_nodes_must_agree_with_the_first_loaded_node():
    actor: Any = KeeperActor(cast(StudyPlan, None), "launch")
    mine = {"backbone": "0a1b", "data": "2c3d"}
    actor.agree("10.0.0.1", mine)
    actor.agree("10.0.0.2", dict(mine))
    with pytest.raises(LaunchError) as refused:
        actor.agree("10.0.0.3", {**mine, "data": "4e5f"})
    assert str(refused.value).startswith(
        "every node must have the same data; got 2c3d on node 10.0.0.1 and 4e5f on node 10.0.0.3. "
    )
    assert "\n" not in str(refused.value)


def test_special_methods_are_no_calls_of_the_keeper():
    client = KeeperClient(handle=None)
    assert not hasattr(client, "__deepcopy__")
    assert not hasattr(client, "_private")
    assert callable(client.exchange)
