"""A time budget that is used up by work alone, however slow the machine is."""

from types import SimpleNamespace

import pytest

from studies.backends import backend
from trial_runner.requests import TrialRequest

STEP_SECONDS = 0.05


class WorkClock:
    """The clock of a launch, on which time passes only while its trials are trained: told of every step of a trial.

    Attributes:
        seconds: So far.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 0.0
        monkeypatch.setattr(backend, "time", SimpleNamespace(monotonic=lambda: self.seconds))

    def __call__(self, request: TrialRequest, step: int) -> None:
        self.seconds += STEP_SECONDS
