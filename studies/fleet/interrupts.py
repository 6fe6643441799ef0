"""Ctrl-C and SIGTERM as a wish to stop cleanly; a second one stops at once."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Self

_REASONS = {signal.SIGINT: "interrupted by Ctrl-C", signal.SIGTERM: "told to stop by SIGTERM"}
_GRACE_SECONDS = {signal.SIGINT: 30.0, signal.SIGTERM: 6.0}  # container managers kill after 10 s
_LONGEST_GRACE_SECONDS = 120.0


class Interrupts:
    """While entered, the first signal is only noted.

    Attributes:
        reason: What was noted; empty before the first signal.
        grace_seconds: How long whoever must stop has to lay its work aside.
    """

    def __init__(self) -> None:
        """Note nothing yet."""
        self.reason = ""
        self.grace_seconds = _LONGEST_GRACE_SECONDS
        self._earlier: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        """Take the signals over."""
        self.take()
        return self

    def take(self) -> None:
        """Take the signals over, again if need be; outside the main thread there are none to take."""
        if threading.current_thread() is threading.main_thread():
            for number in _REASONS:
                handler = signal.signal(number, self._note)
                self._earlier.setdefault(number, handler)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give the signals back."""
        for number, handler in self._earlier.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._earlier = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.reason:
            raise KeyboardInterrupt
        self.reason = _REASONS[signal.Signals(number)]
        self.grace_seconds = _GRACE_SECONDS[signal.Signals(number)]
