"""What goes on beside the work of a process, in a thread of its own."""

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from studies.errors import StudiesError


class Beside:
    """While entered, a thread does something again and again, until a `StudiesError` ends it.

    Whoever raised that error raises it again where the work is done: a keeper is halted then.
    """

    def __init__(self, act: Callable[[], float]) -> None:
        """Get ready.

        Args:
            act: Returns after how many seconds it wants to be called again.
        """
        self._act = act
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin, for as long as the process lives."""
        self._thread.start()

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Come to an end; what has just begun is done first."""
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(StudiesError):
            while not self._is_closed.wait(self._act()):
                pass
