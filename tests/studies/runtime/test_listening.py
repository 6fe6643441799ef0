"""Silence counts only as far as somebody listened."""

import pytest

from studies.runtime import progress
from studies.runtime.progress import ListeningClock


@pytest.fixture
def pass_time(monkeypatch):
    """Lets so many seconds go by."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def add(seconds):
        now[0] += seconds

    return add


def test_time_goes_by_while_it_is_looked_at(pass_time):
    clock = ListeningClock(lease_seconds=60)
    for _ in range(10):
        pass_time(2.5)
        seen = clock.look()
    assert seen == 25.0
    assert clock.look() == 25.0


def test_a_pause_of_who_listens_counts_as_a_moment(pass_time):
    clock = ListeningClock(lease_seconds=60)
    pass_time(1.0)
    assert clock.look() == 1.0
    pass_time(3600)
    assert clock.look() == 4.0
