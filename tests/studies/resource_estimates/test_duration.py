"""Time and disk of a study, by hand."""

from dataclasses import replace

from studies.resource_estimates.duration import Workload, forecast
from studies.resource_estimates.speed import Speed

MEASURED = {"step_seconds": 0.5, "example_seconds": 0.01, "final_example_seconds": 0.03, "steps": 5}
SPEED = Speed(slots=4, slot_bytes=1e6, backbone_bytes=10, precision="fp32", **MEASURED)
WORK = Workload(trials=10, steps=100, rungs=2, examples=200, workers=2, parameters=1000)


def test_a_trial_is_its_steps_and_its_measurements():
    found = forecast(WORK, SPEED)
    assert found.trial_seconds == 100 * 0.5 + 200 * (2 * 0.01 + 0.03)
    assert found.measuring_share == 10 / 60
    assert found.most_seconds == 60 * 10 / 2
    fewer = forecast(replace(WORK, rung_examples=50), SPEED)
    assert fewer.trial_seconds == 100 * 0.5 + 50 * 2 * 0.01 + 200 * 0.03
    assert forecast(replace(WORK, rung_examples=1000), SPEED) == found


def test_disk_is_what_every_trial_keeps_weights_and_two_moments_of_each():
    assert forecast(WORK, SPEED).disk_bytes == 4 * 1000 * 3 * 10
