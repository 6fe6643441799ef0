"""The time that a keeper writes: whoever sets the machine's clock, nothing ends before it began."""

import threading
import time
from datetime import UTC, datetime, timedelta

_MOST_AHEAD = timedelta(days=366)
"""A record from further in the future was not written by a clock that was only set wrong."""


class WrittenTime:
    """The wall clock as it stood when this began, and what has gone by since on a clock that nobody sets."""

    def __init__(self) -> None:
        """Read the wall clock, once."""
        self._began_at = datetime.now(UTC) - _since_boot()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The present time, in UTC."""
        return self._began_at + _since_boot()

    def follow(self, newest: datetime) -> None:
        """Go on from the newest time that is written, where the clock was set back since."""
        with self._lock:
            behind = newest - self.now()
            if timedelta() < behind < _MOST_AHEAD:
                self._began_at += behind


def _since_boot() -> timedelta:
    """On a clock that goes on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return timedelta(seconds=time.clock_gettime(clock))


WRITTEN_TIME = WrittenTime()
"""Of this process."""
