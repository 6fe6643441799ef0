"""How long a study still takes, and for how long its keeper has listened."""

import random

import pytest

from studies.runtime.progress import ActiveClock, Pace, TimeLeft


def test_pace_is_unknown_before_the_first_steps():
    pace = Pace()
    assert pace.left(5.0, 100) is None
    pace.begin(10.0)
    assert pace.left(20.0, 100) is None
    pace.add_steps(20.0, 0)
    assert pace.left(20.0, 100) is None


def test_remaining_time_follows_the_pace_since_the_first_lease():
    pace = Pace()
    pace.begin(10.0)
    pace.begin(15.0)
    pace.add_steps(20.0, 50)
    # 5 steps a second
    assert pace.left(20.0, 200) == TimeLeft(seconds=40.0)


def test_between_two_measurements_it_runs_down_to_half_at_most():
    pace = Pace()
    pace.begin(0.0)
    pace.add_steps(10.0, 50)
    estimates = [pace.left(now, 200) for now in (10.0, 20.0, 30.0, 60.0, 600.0)]
    assert [one and one.seconds for one in estimates] == [40.0, 30.0, 20.0, 20.0, 20.0]
    assert not any(one and one.is_more for one in estimates)


def test_a_slower_burst_lets_it_be_more_and_not_rise():
    pace = Pace()
    pace.begin(0.0)
    pace.add_steps(10.0, 50)
    assert pace.left(10.0, 200) == TimeLeft(seconds=40.0)
    pace.add_steps(110.0, 50)
    # by now a step takes 1.1 seconds: 165 for 150 steps
    assert pace.left(110.0, 150) == TimeLeft(seconds=40.0, is_more=True)
    assert pace.left(190.0, 150) == TimeLeft(seconds=40.0, is_more=True)
    pace.add_steps(120.0, 400)
    assert pace.left(120.0, 50) == TimeLeft(seconds=pytest.approx(50 * 120 / 500))


def test_remaining_time_never_rises():
    draw = random.Random(3)
    pace, now, remaining = Pace(), 0.0, 1500.0
    pace.begin(now)
    estimates = []
    for _ in range(400):
        now += draw.expovariate(1.0)
        if draw.random() < 0.3:
            steps = draw.randrange(0, 40)
            pace.add_steps(now, steps)
            remaining = max(0.0, remaining - steps + draw.choice([0] * 9 + [100]))
        left = pace.left(now, remaining)
        if left is not None:
            estimates.append(left.seconds)
    assert estimates == sorted(estimates, reverse=True)
    assert len(set(estimates)) > 20
    assert min(estimates) >= 0


class Hand:
    """A clock that a test turns on."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_goes_by_while_it_is_looked_at():
    hand = Hand()
    clock = ActiveClock(lease_seconds=60, clock=hand)
    for _ in range(10):
        hand.now += 2.5
        seconds = clock.seconds()
    assert seconds == 25.0
    assert clock.seconds() == 25.0


def test_pause_of_the_process_counts_as_a_moment():
    hand = Hand()
    clock = ActiveClock(lease_seconds=60, clock=hand)
    hand.now += 1.0
    assert clock.seconds() == 1.0
    hand.now += 3600
    assert clock.seconds() == 4.0
