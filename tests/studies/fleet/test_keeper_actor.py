"""What the processes of a launch load before they work: nothing that only the keeper needs."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["studies.fleet.tune_worker", "studies.fleet.driver"])
def test_workers_and_the_driver_load_neither_database_nor_sampler(module: str) -> None:
    """Each would load them for half a second or more, while the launch waits."""
    script = (
        f"import sys, {module}\n"
        "heavy = {'sqlalchemy', 'optuna', 'scipy', 'torch', 'transformers', 'studies.keeping.keeper'}\n"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or None)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_launching_loads_no_sampler() -> None:
    script = (
        "import sys, studies.launching.launch\n"
        "sys.exit(', '.join({'optuna', 'scipy', 'torch'} & set(sys.modules)) or None)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
