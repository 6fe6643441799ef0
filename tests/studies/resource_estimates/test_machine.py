"""GPUs that a study needs, and machines without any."""

import pytest

from studies.errors import LaunchError
from studies.resource_estimates import machine
from studies.resource_estimates.machine import check_gpu, gpu_warning
from studies.study_file.sections import Fleet

CASES = [(1, 0, True), (1, 1, False), (0, 0, False), ("auto", 0, False)]


@pytest.mark.parametrize(
    ("gpus", "found", "is_refused"), [(1, 0, True), (1, 1, False), (0, 0, False), ("auto", 0, False)]
)
def test_one_process_has_the_gpu_that_it_was_promised(gpus, found, is_refused, monkeypatch):
    monkeypatch.setattr(machine, "gpus", lambda: (("H100", 80_000_000_000),) * found)
    fleet = Fleet(backend="inline", worker={"gpus": gpus})
    assert gpu_warning(fleet, found) == ""
    if not is_refused:
        check_gpu(fleet)
        return
    with pytest.raises(LaunchError, match=r"must be auto or 0 where fleet.backend is inline and .* no GPU; got 1"):
        check_gpu(fleet)


@pytest.mark.parametrize(
    ("gpus", "found", "is_warned"), [(1, 0, True), (1, 1, False), (0, 0, False), ("auto", 0, False)]
)
def test_launch_on_ray_that_would_wait_for_a_gpu_is_warned_of(gpus, found, is_warned):
    fleet = Fleet(backend="ray", worker={"gpus": gpus})
    check_gpu(fleet)
    assert gpu_warning(fleet, found).startswith("waiting for a GPU: this Ray cluster has none;") == is_warned
