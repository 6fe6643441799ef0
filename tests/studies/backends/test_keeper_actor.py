"""Imports of the processes of a launch: none that only the keeper needs."""

import subprocess
import sys
from typing import Any, cast

import pytest

from studies.backends.keeper_actor import KeeperActor, KeeperClient
from studies.errors import LaunchError
from studies.runtime.study_plan import StudyPlan


@pytest.mark.slow
@pytest.mark.parametrize("module", ["studies.backends.tune_worker", "studies.backends.driver"])
def test_workers_and_the_driver_load_neither_database_nor_sampler(module):
    """Test that imports of the keeper, half a second or more, do not delay the other processes."""
    script = (
        f"import sys, {module}\n"
        "heavy = {'sqlalchemy', 'optuna', 'scipy', 'torch', 'transformers', 'studies.runtime.keeper'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_launching_loads_no_sampler():
    script = (
        "import sys, studies.launch.launch\n"
        "sys.exit(', '.join({'optuna', 'scipy', 'torch'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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


def test_what_copies_and_pickles_ask_for_is_no_method_of_the_keeper():
    client = KeeperClient(handle=None)
    assert not hasattr(client, "__deepcopy__")
    assert not hasattr(client, "_private")
    assert callable(client.exchange)
