"""Calls of the Hugging Face libraries: lazy, quiet, without telemetry, without waiting for an absent network."""

import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from trial_runner.silence import at_least, quiet_quantizers

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def is_hub_name(name: str) -> bool:
    """Return whether ``name`` could be a repository of the hub: ``model`` or ``owner/model``."""
    return _HUB_NAME.fullmatch(name) is not None


def one_line(error: BaseException) -> str:
    """Return the text of an error and of its deepest cause, on one line of at most 300 characters."""
    while error.__cause__ is not None:
        error = error.__cause__
    if type(error).__name__ == "OfflineModeIsEnabled":  # its own text blames a variable that may not be set
        return "the hub cannot be reached (or HF_HUB_OFFLINE is set), and its cache does not hold it."
    return bounded_line(str(error)) or type(error).__name__


def bounded_line(text: str, most: int = 300) -> str:
    """Return a text on one line of at most ``most`` characters, with control characters escaped."""
    line = " ".join(text[: 4 * most].split())
    plain = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)
    return plain if len(plain) <= most and len(text) <= 4 * most else f"{plain[: most - 3]}..."


@contextmanager
def hub_access(source: str) -> Iterator[None]:
    """Call the hub without telemetry; use the local cache if the hub's host cannot be resolved.

    Without the check, each file would be retried for about 25 seconds before the cache is used.

    Args:
        source: Folder, for which no network is used at all, or a hub name.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    from huggingface_hub import constants

    offline = constants.HF_HUB_OFFLINE
    with at_least("huggingface_hub", logging.ERROR):
        try:
            constants.HF_HUB_OFFLINE = offline or Path(source).is_dir() or not is_resolved(constants.ENDPOINT)
            yield
        finally:
            constants.HF_HUB_OFFLINE = offline


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Suppress progress bars, and reports of keys that are expected not to match, within the context."""
    from transformers.utils import logging as transformers_logging

    had_bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    with at_least("transformers", logging.ERROR), quiet_quantizers(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")  # which nothing here calls
        warnings.filterwarnings("ignore", message=".is_gradient_checkpointing. is deprecated")  # which peft calls
        try:
            yield
        finally:
            if had_bars:
                transformers_logging.enable_progress_bar()


@contextmanager
def quiet_datasets() -> Iterator[None]:
    """Suppress progress bars, log lines about errors that are raised anyway, and calls of the hub, within the context.

    ``datasets`` reports each file that it loads to the hub, which waits for seconds without a network.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    import datasets

    had_bars, counts = not datasets.are_progress_bars_disabled(), datasets.config.HF_UPDATE_DOWNLOAD_COUNTS
    datasets.disable_progress_bars()
    datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = False
    with at_least("datasets", logging.CRITICAL):
        try:
            yield
        finally:
            datasets.config.HF_UPDATE_DOWNLOAD_COUNTS = counts
            if had_bars:
                datasets.enable_progress_bars()


def is_resolved(endpoint: str) -> bool:
    """Return whether the host of ``endpoint`` has an address; with a proxy, the proxy resolves it."""
    if getproxies():
        return True
    try:
        socket.getaddrinfo(urlsplit(endpoint).hostname, 443)
    except OSError:
        return False
    return True
