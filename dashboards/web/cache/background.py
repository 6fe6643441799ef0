"""What takes long is worked out in one thread, once per state, and never for more than a tenth of the time."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

_REST = 9.0
"""How long it rests after work, in units of what the work took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedResult(Generic[T]):
    """What was worked out.

    Attributes:
        state: Of what it was worked out.
        value: The result; None if there is none.
        problem: Why there is none; empty if there is.
        times: 1, 2, 3, … of its question.
    """

    state: Hashable
    value: T | None
    problem: str
    times: int


class Background(Generic[T]):
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
        self._found: CachedResult[T] | None = None
        self._is_busy = False
        self._rests_until = 0.0

    @property
    def found(self) -> CachedResult[T] | None:
        """The newest result; None before the first."""
        return self._found

    def ask(self, state: Hashable, work: Callable[[], T]) -> CachedResult[T] | None:
        """The newest result, which may be of an earlier state; a new one is on its way then."""
        with self._lock:
            found = self._found
            is_new = found is not None and found.state == state
            if not is_new and not self._is_busy and time.monotonic() >= self._rests_until:
                self._is_busy = True
                self._executor.submit(self._work, state, work)
        return found

    def now(self, state: Hashable, work: Callable[[], T]) -> CachedResult[T]:
        """The result of this state, worked out at once where it is not known."""
        found = self._found
        return found if found is not None and found.state == state else self._work(state, work)

    def _work(self, state: Hashable, work: Callable[[], T]) -> CachedResult[T]:
        began = time.monotonic()
        value, problem = None, ""
        try:
            value = work()
        except self._refusals as error:
            problem = str(error)
        finally:
            with self._lock:
                times = 1 + (self._found.times if self._found is not None else 0)
                found = CachedResult(state=state, value=value, problem=problem, times=times)
                self._found = found
                self._is_busy = False
                self._rests_until = time.monotonic() + _REST * (time.monotonic() - began)
        return found
