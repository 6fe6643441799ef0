"""Lengths of time as people write them."""

import re

_PARTS = re.compile(r"(?:(?P<h>\d+(?:\.\d+)?)h)?(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s?)?")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def parse_duration(value: object) -> float:
    """Seconds of a length of time: ``"90s"``, ``"5m"``, ``"1h30m"``, ``"300"`` or a number of seconds.

    Raises:
        ValueError: If it cannot be read, or is not above 0.
    """
    seconds: float | None = None
    if isinstance(value, str):
        match = _PARTS.fullmatch(value.strip().lower().replace(" ", ""))
        if match and any(match.groupdict().values()):
            seconds = sum(float(match[unit]) * _SECONDS[unit] for unit in "hms" if match[unit])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if seconds is None or not 0 < seconds < float("inf"):
        raise ValueError("must be a time above 0, such as 90s, 5m, 1h30m or a number of seconds")
    return seconds
