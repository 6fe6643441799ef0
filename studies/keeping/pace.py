"""How long a study still takes, told from the steps that its trials have made. What is said never rises."""

from studies.keeping.progress import TimeLeft

_MUCH_MORE = 1.2
"""So many times what is said, before it is said to be more."""

_KEPT = 0.5
"""Between two measurements time runs down, but to no less than this share of what the last one told."""


class Pace:
    """Turns measurements of steps into the time that is left.

    Steps are heard of in bursts, when trials are measured. So the pace is what it was at the last burst, and in between
    the time that is left runs down. A later burst that tells more does not let it rise: it is said to be more instead.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._began_at: float | None = None
        self._made = 0
        self._heard_at = 0.0
        self._said: float | None = None

    def begin(self, now: float) -> None:
        """The first trial is lent; what came before does not count."""
        if self._began_at is None:
            self._began_at = now

    def hear(self, now: float, steps: int) -> None:
        """So many more steps were made by now."""
        if steps > 0:
            self._made += steps
            self._heard_at = now

    def left(self, now: float, remaining: float) -> TimeLeft | None:
        """What is left of so many steps; None before the first were made."""
        if self._began_at is None or not self._made:
            return None
        seconds = remaining * (self._heard_at - self._began_at) / self._made
        running_down = max(seconds - (now - self._heard_at), _KEPT * seconds)
        self._said = running_down if self._said is None else min(self._said, running_down)
        return TimeLeft(seconds=self._said, is_more=running_down > _MUCH_MORE * self._said)
