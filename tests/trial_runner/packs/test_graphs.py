"""When steps are recorded, that a recording is run on the inputs of the moment, and that every step could be recorded.

Graphs themselves need a GPU; what a GPU refuses to record is seen without one.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from support.packing_cases import EVEN_TASK, TASK, WAITING, every_structure, request_for, runner_of
from support.tiny_backbones import EVERY_BACKBONE, parameters
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from search_space.dimensions import Site
from trial_runner.packs import lane
from trial_runner.packs.graphs import StepGraphs
from trial_runner.tasks import PreparedTask

Tensors = Mapping[str, Tensor]

FROM_THE_HOST = frozenset({"lift_fresh", "lift"})
"""What numbers of Python become: a copy from memory that a graph cannot read again."""


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


class Refused(TorchDispatchMode):
    """Finds the operations that cannot be part of a graph: they wait for the device, or read numbers of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        is_by_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            one is not None and one.dtype == torch.bool for one in args[1]
        )
        if name in WAITING | FROM_THE_HOST or is_by_mask:
            self.found.add(name)
        return func(*args, **(kwargs or {}))


class Watcher:
    """Computes where a GPU would record, and as libraries then do; keeps what a GPU would refuse."""

    def __init__(self) -> None:
        self.recorded = 0
        self.refused: set[str] = set()

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        self.recorded += 1
        with pytest.MonkeyPatch.context() as patch, Refused() as refused:
            patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            results = function()
        self.refused |= refused.found
        return lambda: None, results


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x * torch.tensor(2.0), {"lift_fresh"}),
        (lambda x: x * float(x[0]), {"_local_scalar_dense"}),
        (lambda x: x[x > 0], {"index"}),
        (lambda x: x[torch.arange(2)] * 2.0, set()),
    ],
)
def test_what_a_gpu_refuses_to_record_is_seen(function: Callable[[Tensor], Tensor], found: set[str]) -> None:
    watcher = Watcher()
    inputs = torch.ones(3)
    watcher.record(lambda: {"losses": function(inputs)})
    assert watcher.refused == found


@pytest.mark.parametrize(
    ("task", "dropout", "steps"), [(TASK, 0.1, 16), (EVEN_TASK, 0.0, 4)], ids=["padded_with_dropout", "even"]
)
@pytest.mark.parametrize("family", parameters(*EVERY_BACKBONE, at_once=("roberta",)))
def test_every_step_could_be_recorded(
    family: str,
    task: PreparedTask,
    dropout: float,
    steps: int,
    tiny_backbone: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = runner_of(tiny_backbone(family, dropout), precision="fp32", task=task)
    watcher = Watcher()
    monkeypatch.setattr(lane, "CudaRecorder", lambda: watcher)
    requests = [
        request_for(one, trial, steps=100)
        for trial, one in enumerate(every_structure(runner.backbone.shape))
        if not any(edit.site is Site.GLOBAL for edit in one.edits)
    ]
    pack = runner.open_pack(len(requests))
    for request in requests:
        pack.admit(request)
    pack.advance(1)
    lanes = [one for one in pack._lanes if one._optimizer is not None]
    for one in lanes:
        one._graphs = one._new_graphs(one._optimizer)
    pack.advance(steps)
    runner.close()
    assert watcher.recorded >= len(lanes) > 0, "a shape that came four times is recorded"
    assert not watcher.refused
