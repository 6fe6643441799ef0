"""Trials and steps for a time, by hand."""

from dataclasses import replace

from studies.init.draft import FEWEST_STEPS, FEWEST_TRIALS, MOST_TRIALS, sized
from studies.resource_estimates.duration import Workload, forecast
from studies.resource_estimates.speed import Speed

NOTHING = {"example_seconds": 0.0, "final_example_seconds": 0.0, "slot_bytes": 1.0, "backbone_bytes": 1}
SPEED = Speed(slots=1, step_seconds=0.1, precision="fp32", steps=5, **NOTHING)
WORK = Workload(trials=40, steps=300, rungs=2, examples=100, workers=2, parameters=10)  # 30 seconds a trial


def test_there_are_as_many_trials_as_there_is_time_for():
    assert sized(WORK, SPEED, 600) == replace(WORK, trials=40)
    assert sized(WORK, SPEED, 100_000).trials == MOST_TRIALS


def test_where_the_fewest_trials_take_too_long_they_have_fewer_steps():
    found = sized(WORK, SPEED, 180)  # 24 trials of 30 s on 2 workers take 360 s
    assert (found.trials, found.steps) == (FEWEST_TRIALS, 150)
    assert forecast(found, SPEED).most_seconds <= 180
    assert (sized(WORK, SPEED, 1).trials, sized(WORK, SPEED, 1).steps) == (FEWEST_TRIALS, FEWEST_STEPS)


def test_trials_that_must_be_are_not_changed():
    assert sized(WORK, SPEED, 100_000, trials=5) == replace(WORK, trials=5)
    assert sized(WORK, SPEED, 60, trials=8) == replace(WORK, trials=8, steps=150)
