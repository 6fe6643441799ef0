"""Processes of a launch with Ray: which one is what, and whether any is left."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from support.killed_study import Launch, children

_LEAVING_SECONDS = 60
_LOOK_SECONDS = 0.05


T = TypeVar("T", bound=Callable[..., object])


def by_value(of_a_test: T) -> T:
    """Pickle objects of a test file by value, so that workers need not import it."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[of_a_test.__module__])
    return of_a_test


def live_processes(launch: Launch) -> list[int]:
    """Return all processes that a launch has started and that have not ended."""
    return [pid for pid, _ in children(launch.pid)]


def named(launch: Launch, name: str) -> int:
    """Return the process id of a part of Ray: ``raylet`` or ``gcs_server``."""
    return next(pid for pid, command in children(launch.pid) if f"/{name} " in command)


def driver(launch: Launch) -> int:
    """Return the process id of the launch's Ray driver."""
    return next(pid for pid, command in children(launch.pid) if "studies.backends.driver" in command)


def freeze(pid: int) -> int:
    """Stop a process so that it neither answers nor dies."""
    os.kill(pid, signal.SIGSTOP)
    return pid


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def left(pids: Iterable[int]) -> list[int]:
    """Return the processes that still exist after a grace period."""
    until, here = time.monotonic() + _LEAVING_SECONDS, list(pids)
    while (here := [pid for pid in here if not is_gone(pid)]) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    return here
