"""Order of a trial's training examples: batches of similar lengths, and equal lengths at equal steps.

Shapes: `B` examples of a step.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trial_runner.errors import TrialRequestError
from trial_runner.requests import TrainingPlan
from trial_runner.seeds import derived_seed

_FEWEST = 4
_MOST = 8


def bucket_count(plan: TrainingPlan) -> int:
    """Return the number of buckets into which a plan's examples are split.

    A slot is admitted when another is measured. If the number of buckets divides the steps between measurements, all
    slots of a pack are in phase. They visit the same bucket at the same time, and little is padded.
    """
    between = math.gcd(*plan.evaluate_at_steps)
    most = max(count for count in range(1, _MOST + 1) if between % count == 0)
    return most if most >= _FEWEST else _MOST


def length_buckets(lengths: NDArray[np.integer], count: int) -> tuple[NDArray[np.int64], ...]:
    """Group examples by length, in the same way for every trial.

    Args:
        lengths: Number of tokens of every example.
        count: Number of groups; fewer if there are fewer examples.

    Returns:
        Indices of each bucket's examples, from the shortest to the longest, those of one length in their order. The
        sizes differ by at most 1.

    Raises:
        TrialRequestError: If there is no example or no bucket.
    """
    if not len(lengths) >= 1 or not count >= 1:
        raise TrialRequestError(f"examples and buckets must be at least 1; got {len(lengths)} and {count}.")
    by_length = np.argsort(lengths, kind="stable").astype(np.int64)
    return tuple(np.array_split(by_length, min(count, len(lengths))))


class ExampleOrder:
    """Examples of a trial at each step; depends on its seed, the step, the plan and the data alone.

    The buckets take turns, each once per cycle, in an order that is the same for all trials and in every cycle. Trials
    whose steps differ by whole cycles visit the same bucket. In its turn a bucket gives the next examples of an endless
    stream, in which each epoch is a permutation drawn from the trial's seed.

    Args:
        buckets: Buckets of `length_buckets`.
        sizes: B of each bucket's turns, or one B for all.

    Raises:
        TrialRequestError: If a batch is empty.
    """

    def __init__(self, buckets: Sequence[NDArray[np.int64]], seed: int, sizes: Sequence[int] | int) -> None:
        """Draw the order of the buckets."""
        self._sizes = (sizes,) * len(buckets) if isinstance(sizes, int) else tuple(sizes)
        if len(self._sizes) != len(buckets) or not min(self._sizes) >= 1:
            raise TrialRequestError(f"batch sizes must be at least 1, one for each bucket; got {sizes}.")
        self._buckets = buckets
        self._seed = seed
        turns = np.random.default_rng(derived_seed(len(buckets), "buckets")).permutation(len(buckets))
        self._turns: list[int] = turns.tolist()
        self._epochs: dict[int, tuple[int, NDArray[np.int64]]] = {}

    def examples(self, step: int) -> NDArray[np.int64]:
        """Return the indices of the examples of a step, ``(B,)``.

        Args:
            step: Index of the step, from 0; in any order, though ascending steps are the fastest.
        """
        cycle, turn = divmod(step, len(self._buckets))
        bucket = self._turns[turn]
        size = self._sizes[bucket]
        return np.concatenate(list(self._stream(bucket, cycle * size, (cycle + 1) * size)))

    def sizes_from(self, step: int) -> tuple[int, ...]:
        """Return the B of a cycle from a step on; as short as possible, so that equal cycles compare equal."""
        sizes = [self._sizes[bucket] for bucket in self._turns]
        if len(set(sizes)) == 1:
            return (sizes[0],)
        first = step % len(sizes)
        return (*sizes[first:], *sizes[:first])

    def _stream(self, bucket: int, start: int, stop: int) -> Iterator[NDArray[np.int64]]:
        """Yield a part of a bucket's stream, epoch by epoch."""
        size = len(self._buckets[bucket])
        for epoch in range(start // size, (stop - 1) // size + 1):
            yield self._epoch(bucket, epoch)[max(start - epoch * size, 0) : stop - epoch * size]

    def _epoch(self, bucket: int, epoch: int) -> NDArray[np.int64]:
        """Return a bucket's examples in the order of an epoch; the last one is cached."""
        held = self._epochs.get(bucket)
        if held is None or held[0] != epoch:
            generator = np.random.default_rng(derived_seed(self._seed, f"order/{bucket}", epoch))
            held = (epoch, generator.permutation(self._buckets[bucket]))
            self._epochs[bucket] = held
        return held[1]
