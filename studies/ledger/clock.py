"""Clock of recorded times: nothing ends before it began, even if the machine's clock is changed."""

import threading
import time
from datetime import UTC, datetime, timedelta

_MOST_AHEAD = timedelta(days=366)
"""Largest lead of a recorded time that a wrongly set clock explains."""


class WrittenTime:
    """Wall clock at the start of the process plus the time elapsed since on a monotonic clock."""

    def __init__(self) -> None:
        """Read the wall clock once."""
        self._began_at = datetime.now(UTC) - _since_boot()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """Return the present time in UTC."""
        return self._began_at + _since_boot()

    def follow(self, newest: datetime) -> None:
        """Continue from the newest recorded time if the clock was set back since."""
        with self._lock:
            behind = newest - self.now()
            if timedelta() < behind < _MOST_AHEAD:
                self._began_at += behind


def _since_boot() -> timedelta:
    """Return the time since boot, sleep included where the system counts it."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(seconds=time.clock_gettime(clock))


WRITTEN_TIME = WrittenTime()
"""Clock of this process."""
