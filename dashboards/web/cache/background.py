"""What takes long is worked out in one thread, once per state, and never for more than a tenth of the time."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass

_REST = 9.0
"""How long it rests after work, in units of what the work took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """What was worked out.

    Attributes:
        state: Of what it was worked out.
        value: The result; None if there is none.
        problem: Why there is none; empty if there is.
        times: 1, 2, 3, … of its question.
    """

    state: Hashable
    value: object
    problem: str
    times: int


class Background:
    """A question that is worked out again when what it is about has changed, and somebody asks.

    Args:
        executor: One thread for all questions of a storage.
        refusals: Errors that are answers: their text is shown.
    """

    def __init__(self, executor: Executor, refusals: tuple[type[Exception], ...]) -> None:
        """Know nothing yet."""
        self._executor = executor
        self._refusals = refusals
        self._lock = threading.Lock()
        self._is_busy = False
        self._rests_until = 0.0
        self.found: CachedResult | None = None
        """The newest result; None before the first."""

    def ask(self, state: Hashable, work: Callable[[], object], *, waits: bool = False) -> CachedResult | None:
        """The newest result, which may be of an earlier state unless one waits; a new one is on its way then."""
        found = self.found
        if found is not None and found.state == state:
            return found
        if waits:
            return self._work(state, work)
        with self._lock:
            if not self._is_busy and time.monotonic() >= self._rests_until:
                self._is_busy = True
                self._executor.submit(self._work, state, work)
        return found

    def _work(self, state: Hashable, work: Callable[[], object]) -> CachedResult:
        began = time.monotonic()
        value, problem = None, ""
        try:
            value = work()
        except self._refusals as error:
            problem = str(error)
        finally:
            with self._lock:
                times = 1 + (self.found.times if self.found is not None else 0)
                found = self.found = CachedResult(state=state, value=value, problem=problem, times=times)
                self._is_busy = False
                self._rests_until = time.monotonic() + _REST * (time.monotonic() - began)
        return found
