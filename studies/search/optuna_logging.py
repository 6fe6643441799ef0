"""Optuna without its lines about every study and trial."""

from collections.abc import Iterator
from contextlib import contextmanager

import optuna


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Leave only Optuna's errors in the log, and its verbosity afterwards as it was."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
