"""Rotation of large test sets: a run takes the part that its seed selects.

``DELTASPACE_TEST_SEED=N`` repeats the parts of an earlier run; ``DELTASPACE_TEST_ALL=1`` takes every part.
"""

import os
import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

SEED = "DELTASPACE_TEST_SEED"
EVERYTHING = "DELTASPACE_TEST_ALL"

T = TypeVar("T")


def begin() -> None:
    """Draw the seed of a run; processes that the run starts inherit it."""
    os.environ.setdefault(SEED, str(random.SystemRandom().randrange(10_000)))


def seed() -> int:
    """Return the seed of this run."""
    return int(os.environ[SEED])


def is_everything() -> bool:
    """Return whether this run takes every part."""
    return os.environ.get(EVERYTHING) == "1"


def parts(values: Sequence[T]) -> list[T]:
    """Return the value that the seed selects, or all where everything is taken.

    Runs with successive seeds take them in turn.
    """
    return list(values) if is_everything() else [values[seed() % len(values)]]


def has_turn(name: str) -> bool:
    """Return whether this run takes the named test: one of each three successive seeds does."""
    return is_everything() or (zlib.crc32(f"{name} {seed() // 3}".encode()) + seed()) % 3 == 0


def third(values: Sequence[T]) -> list[T]:
    """Return every third of the values, from an offset given by the seed; all where everything is taken."""
    return list(values) if is_everything() else list(values)[seed() % 3 :: 3]


def sixth(values: Sequence[T]) -> list[T]:
    """Return every sixth of the values, from an offset given by the seed; all where everything is taken."""
    return list(values) if is_everything() else list(values)[seed() % 6 :: 6]
