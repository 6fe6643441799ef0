"""Time and disk of a study, by hand."""

from studies.preflight import forecast
from studies.resource_estimates.speed import Speed
from studies.study_file import Specification, specification_from_mapping

MEASURED = {"step_seconds": 0.5, "example_seconds": 0.01, "final_example_seconds": 0.03, "steps": 5}
SPEED = Speed(slots=4, slot_bytes=1e6, backbone_bytes=10, precision="fp32", **MEASURED)


def study(examples: int | str) -> Specification:
    """Ten trials of 100 steps, measured at 25 and 50 on so many examples."""
    pruning = {"first_rung_steps": 25, "examples": examples}
    keys = {"name": "by-hand", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "1%", "trials": 10}
    return specification_from_mapping({**keys, "training": {"steps": 100}, "pruning": pruning})


def test_a_trial_is_its_steps_and_its_measurements() -> None:
    found = forecast(study("all"), SPEED, 2, examples=200, parameters=1000)
    assert found.trial_seconds == 100 * 0.5 + 200 * (2 * 0.01 + 0.03)
    assert found.measuring_share == 10 / 60
    assert found.most_seconds == 60 * 10 / 2
    fewer = forecast(study(50), SPEED, 2, examples=200, parameters=1000)
    assert fewer.trial_seconds == 100 * 0.5 + 50 * 2 * 0.01 + 200 * 0.03
    assert forecast(study(1000), SPEED, 2, examples=200, parameters=1000) == found


def test_disk_estimate_has_weights_and_two_moments_per_trial() -> None:
    assert forecast(study("all"), SPEED, 2, examples=200, parameters=1000).disk_bytes == 4 * 1000 * 3 * 10
