import subprocess
import sys

import optuna

from studies.search.optuna_logging import quiet_optuna


def test_optuna_is_quiet_inside_and_as_talkative_as_before_outside():
    before = optuna.logging.get_verbosity()
    with quiet_optuna():
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
    assert optuna.logging.get_verbosity() == before


def test_importing_the_search_leaves_the_verbosity_of_optuna_alone():
    script = (
        "import optuna; before = optuna.logging.get_verbosity(); import studies.search.proposer; "
        "assert optuna.logging.get_verbosity() == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
