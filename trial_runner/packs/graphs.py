"""CUDA graphs of training steps: all kernels of a step are launched at once if a step of these shapes was recorded."""

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trial_runner.packs.out_of_memory import release_memory

_LOGGER = logging.getLogger(__name__)
_WARM_STEPS = 3
"""Number of steps that run eagerly before a worker's first recording, to set up libraries and caches."""
_MOST_GRAPHS = 16
"""Largest number of graphs of a lane; each keeps the memory of its step."""

Tensors = Mapping[str, Tensor]


@dataclass(slots=True)
class Recorder:
    """Recorder of steps as CUDA graphs, for all lanes of a pack.

    The graphs share one pool of memory: no two run at once, and results are copied out.

    Attributes:
        is_on: Whether steps are recorded; false once a step could not be recorded, or recordings did not fit.
        run: Number of steps that ran eagerly, of any lane.
        recorded: Number of recorded steps.
        replayed: Number of steps launched from an earlier recording.
    """

    is_on: bool = True
    run: int = 0
    recorded: int = 0
    replayed: int = 0
    _pool: Any = None

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        """Record the launches of a function without computing; return a function that replays them, and its results."""
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            results = function()
        return graph.replay, results


class _CapturedGraph:
    """Recorded step with inputs of its own."""

    def __init__(self, recorder: Recorder, step: Callable[[Tensors], Tensors], inputs: Tensors) -> None:
        self._inputs = {name: tensor.clone() for name, tensor in inputs.items()}
        self._replay, self._results = recorder.record(lambda: step(self._inputs))

    def run(self, inputs: Tensors) -> Tensors:
        for name, tensor in inputs.items():
            self._inputs[name].copy_(tensor)
        self._replay()
        return {name: tensor.clone() for name, tensor in self._results.items()}


class StepGraphs:
    """Runner of a step, from a recording if there is one for inputs of these shapes.

    A worker's first steps, and the first step of a lane, run eagerly. A shape that comes later is recorded at its first
    occurrence, which costs about as much as to run it. Steps that cannot be recorded run eagerly, with equal results.

    Args:
        step: Function that changes its slots in place; its results and launches depend on the values of the inputs
            and on nothing else that changes from step to step.
        recorder: Recorder of the pack.
    """

    def __init__(self, step: Callable[[Tensors], Tensors], recorder: Recorder) -> None:
        """Start without recordings."""
        self._step = step
        self._recorder = recorder
        self._has_run = False
        self._recorded: dict[Hashable, _CapturedGraph] = {}

    def run(self, inputs: Tensors) -> Tensors:
        """Run one step."""
        shapes = tuple((name, tensor.shape, tensor.dtype) for name, tensor in inputs.items())
        recorded = self._recorded.get(shapes)
        if recorded is not None:
            self._recorder.replayed += 1
            return recorded.run(inputs)
        is_warm = self._has_run and self._recorder.run >= _WARM_STEPS
        if is_warm and len(self._recorded) < _MOST_GRAPHS:
            recorded = self._record(shapes, inputs)
        if recorded is not None:
            return recorded.run(inputs)
        results = self._step(inputs)
        self._has_run = True
        self._recorder.run += 1
        return results

    def _record(self, shapes: Hashable, inputs: Tensors) -> _CapturedGraph | None:
        if not self._recorder.is_on:
            return None
        if not self._recorded:
            release_memory()  # what steps have left free is no part of the pool of the recordings
        try:
            self._recorded[shapes] = _CapturedGraph(self._recorder, self._step, inputs)
        except torch.OutOfMemoryError:
            self._recorded.clear()
            self._give_up("the device has no memory to record them")
            return None
        except RuntimeError as error:
            self._give_up(f"they cannot be recorded: {error}")
            return None
        self._recorder.recorded += 1
        return self._recorded[shapes]

    def _give_up(self, why: str) -> None:
        _LOGGER.warning("training steps are launched one by one, because %s", why)
        self._recorder.is_on = False
        release_memory()
