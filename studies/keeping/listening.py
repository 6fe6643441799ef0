"""A clock that stands still while nobody looks at it: silence counts only as far as somebody listened."""

import time

_LOOKS_PER_LEASE = 20


class ListeningClock:
    """Seconds during which a keeper could have heard its workers.

    A keeper that was stopped, or that waited for its database, has heard nobody in that time, and nobody is to blame
    for it: between two looks at the clock at most a twentieth of a lease counts. Keepers are looked at twice a second.
    """

    def __init__(self, lease_seconds: float) -> None:
        """Begin at 0."""
        self._longest = lease_seconds / _LOOKS_PER_LEASE
        self._looked_at = time.monotonic()
        self._seconds = 0.0

    def look(self) -> float:
        """The seconds so far."""
        now = time.monotonic()
        self._seconds += min(now - self._looked_at, self._longest)
        self._looked_at = now
        return self._seconds
