"""How long a keeper waits for a database that is locked or away, and to whom it says so.

Whoever only looks does not wait for long: it is told what is wrong and may try again. A keeper has a fleet behind it,
which would end with it.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.0
_NAP_SECONDS = 0.1


def _say_nothing(text: str) -> None:
    """Nobody asks."""


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """What a keeper brings to a database that cannot be used for a while.

    Attributes:
        seconds: A try that fails after so long is the last.
        tell: Told what is waited for, at every try that fails; and the empty text when the waiting is over.
        is_over: Whether nobody wants to wait any longer.
    """

    seconds: float
    tell: Callable[[str], None] = _say_nothing
    is_over: Callable[[], bool] = _never

    def pauses(self) -> Iterator[None]:
        """Waits a moment at every turn, and ends when it is time to give up."""
        until, pause = time.monotonic() + self.seconds, _FIRST_PAUSE_SECONDS
        while time.monotonic() < until and self._nap(pause):
            yield
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _nap(self, seconds: float) -> bool:
        """Wait; False if it was given up."""
        until = time.monotonic() + seconds
        while not self.is_over():
            if (left := until - time.monotonic()) <= 0:
                return True
            time.sleep(min(left, _NAP_SECONDS))
        return False
