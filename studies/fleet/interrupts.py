"""Ctrl-C, SIGTERM and SIGUSR1 as a wish to stop cleanly; a second one stops at once.

Batch systems send SIGUSR1 a while before they end a job. `timeout` and some shells send SIGTERM twice in one breath, to
the process and to its group: that is one wish.
"""

import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Self

_REASONS = {
    signal.SIGINT: "interrupted by Ctrl-C",
    signal.SIGTERM: "told to stop by SIGTERM",
    signal.SIGUSR1: "told to stop by SIGUSR1",
}
# container managers kill 10 s after SIGTERM
_GRACE_SECONDS = {signal.SIGINT: 30.0, signal.SIGTERM: 6.0, signal.SIGUSR1: 60.0}
_ONE_BREATH_SECONDS = 1.0
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
        self._noted_at = 0.0
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
            if time.monotonic() - self._noted_at < _ONE_BREATH_SECONDS:
                return
            raise KeyboardInterrupt
        self._noted_at = time.monotonic()
        self.reason = _REASONS[signal.Signals(number)]
        self.grace_seconds = _GRACE_SECONDS[signal.Signals(number)]
