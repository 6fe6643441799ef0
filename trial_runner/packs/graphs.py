"""CUDA graphs of a training step: all of its kernels launched at once where a step of the same shapes comes again."""

import logging
from collections.abc import Callable, Hashable, Mapping
from typing import Protocol

import torch
from torch import Tensor

_LOGGER = logging.getLogger(__name__)
_EAGER_STEPS = 3  # before one is recorded: libraries and caches are then set up
_MOST_GRAPHS = 16  # of a lane; each keeps the memory of its step

Tensors = Mapping[str, Tensor]


class Recorder(Protocol):
    """Records what a function launches, without waiting for it."""

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        """How to run it again, and what it then leaves its results in; recording itself computes nothing."""
        ...


class CudaRecorder:
    """Records into CUDA graphs, which share one pool of memory."""

    def __init__(self) -> None:
        """Make the pool."""
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        """See `Recorder`."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = function()
        return graph.replay, results


class _Recorded:
    """A step that was recorded with inputs of its own."""

    def __init__(self, recorder: Recorder, step: Callable[[Tensors], Tensors], inputs: Tensors) -> None:
        self._inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        self._replay, self._results = recorder.record(lambda: step(self._inputs))

    def run(self, inputs: Tensors) -> Tensors:
        for name, tensor in inputs.items():
            self._inputs[name].copy_(tensor)
        self._replay()
        return {name: tensor.clone() for name, tensor in self._results.items()}


class StepGraphs:
    """Runs a step, from a recording where there is one for inputs of these shapes.

    The first few steps of each shape are run as they are. If a step cannot be recorded, none is any more, and all are
    run as they are; that costs time and changes nothing.

    Args:
        step: Changes its slots in place; its results and all it launches depend on the inputs' values and on nothing
            else that changes from step to step.
        recorder: Records it.
    """

    def __init__(self, step: Callable[[Tensors], Tensors], recorder: Recorder) -> None:
        """Nothing is recorded yet."""
        self._step = step
        self._recorder: Recorder | None = recorder
        self._seen: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, _Recorded] = {}

    def run(self, inputs: Tensors) -> Tensors:
        """One step."""
        shapes = tuple((name, tensor.shape, tensor.dtype) for name, tensor in inputs.items())
        recorded = self._recorded.get(shapes)
        if recorded is None and self._is_due(shapes):
            recorded = self._record(shapes, inputs)
        return self._step(inputs) if recorded is None else recorded.run(inputs)

    def _is_due(self, shapes: Hashable) -> bool:
        self._seen[shapes] = self._seen.get(shapes, 0) + 1
        return self._seen[shapes] > _EAGER_STEPS and len(self._recorded) < _MOST_GRAPHS

    def _record(self, shapes: Hashable, inputs: Tensors) -> _Recorded | None:
        if self._recorder is None:
            return None
        try:
            self._recorded[shapes] = _Recorded(self._recorder, self._step, inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            _LOGGER.warning("training steps are launched one by one, because they cannot be recorded: %s", error)
            self._recorder = None
            return None
        return self._recorded[shapes]
