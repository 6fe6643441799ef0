"""The order of training examples: fair, reproducible, in phase over trials, and with little padding."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from trial_runner.packs.order import ExampleOrder, bucket_count, length_buckets
from trial_runner.requests import TrainingPlan
from trial_runner.training import Training


def lengths_of(examples: int) -> NDArray[np.int64]:
    """Log-normal, as the lengths of sentences are, between 4 and 128 tokens."""
    drawn = np.random.default_rng(0).lognormal(mean=3.0, sigma=0.6, size=examples)
    return np.clip(drawn, 4, 128).astype(np.int64)


def bucket_of(buckets: Sequence[NDArray[np.int64]], examples: NDArray[np.int64]) -> int:
    """Number of the only bucket that holds all the examples."""
    (number,) = (n for n, members in enumerate(buckets) if np.isin(examples, members).all())
    return number


def plan_with(*evaluate_at_steps: int) -> TrainingPlan:
    return TrainingPlan(steps=evaluate_at_steps[-1], batch_size=4, evaluate_at_steps=evaluate_at_steps)


def test_buckets_split_the_examples_by_length_then_index():
    buckets = length_buckets(np.array([5, 3, 9, 3, 7, 3, 1]), 3)
    assert [members.tolist() for members in buckets] == [[6, 1, 3], [5, 0], [4, 2]]


@pytest.mark.parametrize(
    ("evaluate_at_steps", "expected"),
    [
        ((25, 75, 225), 5),  # greatest common divisor 25
        ((100, 200), 5),  # of 100, 5 is the largest divisor up to 8
        ((24, 48), 8),
        ((14, 28), 7),
        ((12,), 6),
        ((4, 12), 4),
        ((2, 4), 8),  # no divisor of 2 is large enough
        ((3, 9), 8),
        ((33, 66), 8),  # the largest small divisor of 33 is 3
        ((1, 10), 8),
        ((1000,), 8),
    ],
)
def test_the_buckets_divide_the_steps_between_measurements(evaluate_at_steps, expected):
    assert bucket_count(plan_with(*evaluate_at_steps)) == expected


@pytest.mark.parametrize("batch_size", [4, 12, 30])
def test_over_whole_epochs_every_example_is_used_equally_often(batch_size):
    buckets = length_buckets(lengths_of(48), 4)  # 12 examples each
    order = ExampleOrder(buckets, 7, batch_size)
    steps = 4 * 12  # each bucket is visited 12 times, for 12 B examples: B epochs
    used = np.bincount(np.concatenate([order.examples(step) for step in range(steps)]), minlength=48)
    assert used.tolist() == [batch_size] * 48


def test_examples_of_a_bucket_are_used_equally_often():
    order = ExampleOrder(length_buckets(lengths_of(48), 4), 7, 5)
    used = np.zeros(48, dtype=np.int64)
    for cycle in range(30):
        for step in range(4 * cycle, 4 * cycle + 4):
            used += np.bincount(order.examples(step), minlength=48)
        assert used.max() - used.min() <= 1


def test_a_bucket_smaller_than_a_batch_gives_whole_epochs_and_a_rest():
    order = ExampleOrder(length_buckets(np.arange(6), 2), 3, 7)
    for step in range(8):
        counts = np.bincount(order.examples(step), minlength=6)
        assert sorted(counts[counts > 0]) == [2, 2, 3]


def test_the_order_depends_on_the_seed_and_the_step_alone():
    buckets = length_buckets(lengths_of(50), 4)
    ascending = ExampleOrder(buckets, 11, 6)
    expected = [ascending.examples(step).tolist() for step in range(60)]
    jumping = ExampleOrder(length_buckets(lengths_of(50), 4), 11, 6)
    for step in np.random.default_rng(0).permutation(60).tolist():
        assert jumping.examples(step).tolist() == expected[step]
    assert len({tuple(batch) for batch in expected}) == 60


def test_buckets_are_visited_once_a_cycle_in_mixed_order():
    buckets = length_buckets(lengths_of(400), 8)
    order = ExampleOrder(buckets, 1, 8)
    visited = [bucket_of(buckets, order.examples(step)) for step in range(16)]
    assert sorted(visited[:8]) == sorted(visited[8:]) == list(range(8))
    assert visited[:8] != list(range(8))


def mean_padded_tokens(buckets: int) -> float:
    """Compute the mean padded tokens of a row in batches of four trials, two of which start 40 steps later."""
    lengths = lengths_of(2000)
    split = length_buckets(lengths, buckets)
    orders = [ExampleOrder(split, seed, 16) for seed in range(4)]
    starts = (0, 0, 40, 40)
    widths = [
        max(lengths[order.examples(step + start)].max() for order, start in zip(orders, starts, strict=True))
        for step in range(80)
    ]
    return float(np.mean(widths))


def test_buckets_make_padding_small_for_a_pack_in_phase():
    real = float(lengths_of(2000).mean())
    assert mean_padded_tokens(8) < 1.6 * real
    assert mean_padded_tokens(1) > 3 * real


def test_token_batches_are_maximal_and_cover_all_examples():
    lengths = lengths_of(60)
    buckets = length_buckets(lengths, 4)
    plan = Training(batch_size=9, batch_tokens=40)
    sizes = [plan.examples_of(int(lengths[some[-1]])) for some in buckets]
    assert sizes == [max(1, min(9, 40 // max(lengths[some]))) for some in buckets]
    assert len(set(sizes)) > 1
    order = ExampleOrder(buckets, 3, sizes)
    visits: dict[int, list[int]] = {}
    for step in range(4 * 15):
        rows = order.examples(step)
        bucket = bucket_of(buckets, rows)
        assert len(rows) == order.sizes_from(step)[0] == sizes[bucket]
        assert len(rows) * max(lengths[rows]) <= 40 or len(rows) == 1
        visits.setdefault(bucket, []).extend(rows.tolist())
    for bucket, rows in visits.items():
        assert sorted(rows[:15]) == sorted(buckets[bucket].tolist()), "an epoch is a permutation"
    assert order.sizes_from(1) == order.sizes_from(5) != order.sizes_from(2)
    assert ExampleOrder(buckets, 3, 5).sizes_from(2) == (5,)
    assert Training(batch_size=9).examples_of(1_000) == 9
    assert Training(batch_size=9, batch_tokens=4).examples_of(1_000) == 1
