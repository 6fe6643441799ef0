"""Reading many records, which hold no cycles, without a collector that looks through them again and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the collection of cycles: a third of the time in which 20,000 trials are read and ranked."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
