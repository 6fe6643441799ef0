"""Slow results, computed in one thread, once per state, and for at most a tenth of the time."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass

_PAUSE_RATIO = 9.0
"""Pause after a computation, in units of its duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult:
    """Result of a computation.

    Attributes:
        state: State of the study for which it was computed.
        value: The result; None if it failed.
        problem: Error message; empty on success.
        number: Number of the computation, from 1.
    """

    state: Hashable
    value: object
    problem: str
    number: int


class Background:
    """A value that is computed again when it is requested for a new state.

    Args:
        executor: Single thread, shared by all values of a storage.
        refusals: User-facing errors, whose text becomes `CachedResult.problem`.
    """

    def __init__(self, executor: Executor, refusals: tuple[type[Exception], ...]) -> None:
        """Start without a result."""
        self._executor = executor
        self._refusals = refusals
        self._lock = threading.Lock()
        self._is_busy = False
        self._idle_until = 0.0
        self.newest: CachedResult | None = None
        """The newest result; None before the first."""

    def ask(self, state: Hashable, work: Callable[[], object], *, waits: bool = False) -> CachedResult | None:
        """Return the newest result, and start a computation if the state is new.

        Args:
            waits: Whether to compute the result of this state now; otherwise the result may be of an earlier one.
        """
        newest = self.newest
        if newest is not None and newest.state == state:
            return newest
        if waits:
            return self._work(state, work)
        with self._lock:
            if not self._is_busy and time.monotonic() >= self._idle_until:
                self._is_busy = True
                self._executor.submit(self._work, state, work)
        return newest

    def _work(self, state: Hashable, work: Callable[[], object]) -> CachedResult:
        began = time.monotonic()
        value, problem = None, ""
        try:
            value = work()
        except self._refusals as error:
            problem = str(error)
        finally:
            with self._lock:
                number = 1 + (self.newest.number if self.newest is not None else 0)
                newest = self.newest = CachedResult(state=state, value=value, problem=problem, number=number)
                self._is_busy = False
                self._idle_until = time.monotonic() + _PAUSE_RATIO * (time.monotonic() - began)
        return newest
