"""What goes on beside the work of a process, in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Self

from studies.errors import LaunchError, StudiesError
from studies.runtime.messages import crash_reason


class Beside:
    """While entered, a thread does something again and again, until an error ends it.

    Whoever raised a `StudiesError` raises it again where the work is done: a keeper is halted then. Of any other error
    it is told.
    """

    def __init__(self, act: Callable[[], float], halt: Callable[[StudiesError], None]) -> None:
        """Get ready.

        Args:
            act: Returns after how many seconds it wants to be called again.
            halt: Ends the work, for a reason in one line.
        """
        self._act = act
        self._halt = halt
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin, for as long as the process lives."""
        self._thread.start()

    def __enter__(self) -> Self:
        """Begin."""
        self.start()
        return self

    def __exit__(self, *raised: object) -> None:
        """Come to an end; what has just begun is done first."""
        self._is_closed.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._is_closed.wait(self._act()):
                pass
        except StudiesError:
            return
        except Exception as error:  # noqa: BLE001 - nobody else would hear of it
            met = crash_reason(error).rstrip(".")
            self._halt(LaunchError(f"a keeper must look after its study beside the work; it met {met}. Launch again."))
