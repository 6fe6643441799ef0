"""Backends: who runs the workers of a study. Importing this loads neither torch nor ray.

===============  ==============================================================
``backend``      what every backend is given and returns; how a worker gets its runner
``inline``       one worker in this process
``tune``         workers as long-lived trials of Ray Tune, the keeper an actor
===============  ==============================================================
"""

from collections.abc import Mapping

from studies.backends.backend import Backend, RunnerFactory, Watch
from studies.backends.tune import run_tune
from studies.runtime.progress import Standing
from studies.runtime.study_plan import StudyPlan
from studies.study_file.fields import BackendName
from studies.study_file.sections import Fleet


def _inline(plan: StudyPlan, factory: RunnerFactory, options: Fleet, watch: Watch) -> Standing:
    from studies.backends.inline import run_inline

    return run_inline(plan, factory, options, watch)


BACKENDS: Mapping[BackendName, Backend] = {"ray": run_tune, "inline": _inline}
"""Who can run a study, by the name in its file. ``tests/contracts/test_backends.py`` says what each keeps."""
