"""When steps are recorded, and that a recording is run on the inputs of the moment. Graphs themselves need a GPU."""

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from trial_runner.packing.graphs import StepGraphs

Tensors = Mapping[str, Tensor]


class Replayer:
    """Records a function as a GPU does: what it computed with stays, and replaying fills the same results again."""

    def __init__(self, error: RuntimeError | None = None) -> None:
        self.recorded = self.replayed = 0
        self._error = error

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        if self._error is not None:
            raise self._error
        self.recorded += 1
        results = {name: torch.empty(3) for name in ("losses",)}

        def replay() -> None:
            self.replayed += 1
            for name, tensor in function().items():
                results[name].copy_(tensor)

        return replay, results


def doubled(inputs: Tensors) -> Tensors:
    return {"losses": 2 * inputs["x"].sum(dim=1)}


def batch(value: float, width: int = 4) -> Tensors:
    return {"x": torch.full((3, width), value)}


def test_steps_of_one_shape_are_recorded_once_and_run_on_their_own_inputs() -> None:
    recorder = Replayer()
    graphs = StepGraphs(doubled, recorder)
    found = [graphs.run(batch(value))["losses"] for value in range(8)]
    assert (recorder.recorded, recorder.replayed) == (1, 5)
    assert [each.tolist() for each in found] == [[8.0 * value] * 3 for value in range(8)], "results must not be shared"


def test_every_shape_has_a_recording_of_its_own() -> None:
    recorder = Replayer()
    graphs = StepGraphs(doubled, recorder)
    for value in range(12):
        width = 4 + value % 2
        assert graphs.run(batch(value, width))["losses"].tolist() == [2.0 * value * width] * 3
    assert recorder.recorded == 2


def test_what_cannot_be_recorded_is_run_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    graphs = StepGraphs(doubled, Replayer(RuntimeError("operation not permitted when stream is capturing")))
    found = [graphs.run(batch(value))["losses"].tolist() for value in range(8)]
    assert found == [[8.0 * value] * 3 for value in range(8)]
    assert len(caplog.records) == 1, "said once"


def test_running_out_of_memory_is_the_pack_s_matter() -> None:
    graphs = StepGraphs(doubled, Replayer(torch.OutOfMemoryError("no memory")))
    for value in range(3):
        graphs.run(batch(value))
    with pytest.raises(torch.OutOfMemoryError):
        graphs.run(batch(3))
