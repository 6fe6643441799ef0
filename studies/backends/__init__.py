"""Backends, which run the workers of a study; importing this package loads neither torch nor ray.

===============  ==============================================================
``backend``      interface of backends; factory of the workers' runners
``inline``       one worker in this process
``tune``         workers as long-lived trials of Ray Tune, the keeper an actor
===============  ==============================================================
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from studies.backends.backend import Backend, RunnerFactory, Watch
from studies.backends.tune import run_tune
from studies.runtime.progress import LaunchStatus
from studies.runtime.study_plan import StudyPlan
from studies.study_file.fields import BackendName
from studies.study_file.sections import Fleet

if TYPE_CHECKING:
    from studies.ledger.ledger import Ledger


def _inline(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch, ledger: "Ledger") -> LaunchStatus:
    from studies.backends.inline import run_inline

    return run_inline(plan, factory, options, watch, ledger)


BACKENDS: Mapping[BackendName, Backend] = {"ray": run_tune, "inline": _inline}
"""Backends by the name in a study file. ``tests/contracts/test_backends.py`` checks every entry."""
