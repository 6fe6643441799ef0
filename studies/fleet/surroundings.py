"""What of a machine's surroundings decides which backbone and data its workers get."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

_NAMED = ("HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE")
_TOKEN = "a token of the hub"
_USUAL_HOME = "~/.cache/huggingface"


def hub_settings() -> dict[str, str]:
    """How this process reaches the hub, by name: what is set, and whether there is a token, which is not told."""
    said = {name: os.environ.get(name, "") for name in _NAMED}
    return said | {_TOKEN: "there" if _has_token() else ""}


def _has_token() -> bool:
    home = os.environ.get("HF_HOME") or _USUAL_HOME
    file = os.environ.get("HF_TOKEN_PATH") or f"{home}/token"
    return bool(os.environ.get("HF_TOKEN")) or Path(file).expanduser().is_file()


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> Iterator[str]:
    """How a node reaches the hub in another way than the launching machine does, a clause each."""
    for name, value in here.items():
        if there.get(name, "") != value:
            yield f"{name} is {there.get(name) or 'not set'} ({value or 'not set'} on the launching machine)"
