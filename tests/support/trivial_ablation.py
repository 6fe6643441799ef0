"""A study of trivial trials to be taken apart, also in a process of its own that kills itself (``kill -9``) in between.

Usage: trivial_ablation.py STORAGE_URL STUDY TRIAL STEP
"""

import os
import signal
import sys
from pathlib import Path

from support.small_study import small_study
from support.trivial_runner import TrivialRunner

from studies.confirmation.execution import confirm
from studies.confirmation.request import AblationRequest
from studies.launch.launch import launch
from trial_runner.requests import TrialRequest

STEPS = 16
BEST = 9
"""The trial that scores most."""


def launch_study(url: str, folder: Path, trials: int = 14) -> None:
    """Launch ``reviews`` to its end."""
    search = {"sampler": "random", "published": ["mam_adapter", "bitfit"], "replicates": 0}
    study = small_study(
        folder, trials=trials, steps=STEPS, first_rung=None, name="reviews", search=search, fleet={"pack": 4}
    )
    scores = {number: 0.5 + number / 1000 for number in range(trials)} | {BEST: 0.9}
    launch(study, storage_url=url, factory=lambda threads: TrivialRunner(scores=scores))


def main() -> None:
    url, study, trial, at = sys.argv[1:]

    def die(request: TrialRequest, step: int) -> None:
        if (request.trial, step) == (int(trial), int(at)):
            os.kill(os.getpid(), signal.SIGKILL)

    confirm(
        AblationRequest(study=study, seeds=3),
        storage_url=url,
        factory=lambda threads: TrivialRunner(on_step=die),
        lease_seconds=20,
    )


if __name__ == "__main__":
    main()
