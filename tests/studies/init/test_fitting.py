"""Trials and steps for a time, by hand: ``room`` is how many whole trials there is time for."""

import pytest

from studies.init.draft import fitting


@pytest.mark.parametrize(
    ("room", "trials", "found"),
    [
        (40.0, None, (40, 300)),
        (6_666.0, None, (100, 300)),
        (12.0, None, (24, 150)),
        (0.1, None, (24, 60)),
        (6_666.0, 5, (5, 300)),
        (4.0, 8, (8, 150)),
    ],
    ids=[
        "as many as fit",
        "the most",
        "the fewest with half the steps",
        "the fewest",
        "as asked",
        "asked for too many",
    ],
)
def test_trials_come_first_and_then_steps(room: float, trials: int | None, found: tuple[int, int]) -> None:
    assert fitting(room, 300, trials) == found
