"""A small task of random tokens that a tiny backbone can learn."""

import numpy as np

from trial_runner.tasks import PreparedTask, Split

_SIZES = {"train": 30, "validation": 25, "test": 10}


def halves_task(first: int = 5, end: int = 200) -> PreparedTask:
    """Build rows of 3 to 8 tokens; the label is the half of the vocabulary of the second token.

    Args:
        first: Smallest token.
        end: One more than the largest; half of it is the border.
    """
    splits = {name: _split(seed, size, first, end) for seed, (name, size) in enumerate(_SIZES.items())}
    return PreparedTask(
        name="halves", labels=("high", "low"), metric="accuracy", splits=splits, notes=(), fingerprint="0"
    )


def _split(seed: int, size: int, first: int, end: int) -> Split:
    random = np.random.default_rng(seed)
    lengths = random.integers(3, 9, size)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    input_ids = random.integers(first, end, offsets[-1]).astype(np.int32)
    labels = (input_ids[offsets[:-1] + 1] < end // 2).astype(np.int64)
    return Split(input_ids=input_ids, offsets=offsets, labels=labels)
