"""Messages between a process of an arm and its parent."""

import json
import sys
from typing import Any

MARK = "benchmark:"
"""Prefix of the messages; libraries print lines as well."""


def send(word: str, value: dict[str, Any]) -> None:
    """Send a message to the parent."""
    print(f"{MARK}{json.dumps({'word': word, **value})}", flush=True)


def wait_for_parent() -> None:
    """Wait until the parent sends a line."""
    sys.stdin.readline()
