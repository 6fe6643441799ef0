"""A course of numbers in one line of text."""

from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(course: Sequence[tuple[int, float]], *, until: int, width: int) -> str:
    """How the best score rose with the number of ended trials; empty before there are two scores.

    Args:
        course: After how many trials it rose, and to what; ascending in both.
        until: How many trials have ended.
        width: Most characters.
    """
    if len(course) < 2:
        return ""
    (first, low), (_, high) = course[0], course[-1]
    count = min(width, until - first + 1)
    seen = [first + round(place * (until - first) / max(1, count - 1)) for place in range(count)]
    values = [max(score for ended, score in course if ended <= at) for at in seen]
    return "".join(_LEVELS[round((value - low) / (high - low) * (len(_LEVELS) - 1))] for value in values)
