"""Lines between a process of an arm and the one that started it."""

import json
import sys
from typing import Any

MARK = "benchmark:"
"""What begins a line that is meant for the parent; libraries print too."""


def say(word: str, value: dict[str, Any]) -> None:
    """Tell the parent something."""
    print(f"{MARK}{json.dumps({'word': word, **value})}", flush=True)


def wait() -> None:
    """Until the parent sends a line."""
    sys.stdin.readline()
