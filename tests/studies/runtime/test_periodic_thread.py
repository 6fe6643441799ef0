"""Periodic threads: their failure ends the work with an error, never in silence."""

import threading

import pytest

from studies.errors import FencedError, LaunchError, StudiesError
from studies.runtime.periodic_thread import PeriodicThread


def run(*raised: Exception) -> list[StudiesError]:
    """Return the errors that stop the work when the second call raises."""
    calls = iter((None, *raised))
    halted: list[StudiesError] = []
    is_over = threading.Event()

    def act() -> float:
        error = next(calls, None)
        if error is not None:
            is_over.set()
            raise error
        return 0.0

    with PeriodicThread(act, halted.append):
        assert is_over.wait(60)
    return halted


def test_uncaught_error_of_a_thread_ends_the_work_in_one_line():
    [error] = run(ZeroDivisionError("by zero.\nAnd more"))
    assert isinstance(error, LaunchError)
    assert str(error).endswith(": ZeroDivisionError: by zero. Launch again.")


@pytest.mark.parametrize("kind", [FencedError, LaunchError])
def test_reraised_error_is_reported_once(kind):
    assert run(kind("was taken over.")) == []
