"""Periodic work of a process in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Self

from studies.errors import LaunchError, StudiesError
from studies.runtime.messages import crash_reason


class PeriodicThread:
    """Thread that calls a function periodically while entered, until an error ends it.

    A `StudiesError` has halted the keeper and is raised again in its calls, so it is not reported here. Any other
    error halts the work.
    """

    def __init__(self, act: Callable[[], float], halt: Callable[[StudiesError], None]) -> None:
        """Prepare the thread.

        Args:
            act: Function that returns the seconds until its next call.
            halt: Function that ends the work with an error.
        """
        self._act = act
        self._halt = halt
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start for the lifetime of the process."""
        self._thread.start()

    def __enter__(self) -> Self:
        """Start the thread."""
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Stop the thread after the current call."""
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closed.wait(self._act()):
                pass
        except StudiesError:
            return
        except Exception as error:  # noqa: BLE001 - it would be lost in this thread
            reason = crash_reason(error).rstrip(".")
            self._halt(LaunchError(f"cannot maintain the study during the work: {reason}. Launch again."))
