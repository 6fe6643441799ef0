"""When steps are recorded, that a recording is run on the inputs of the moment, and that every step could be recorded.

Graphs themselves need a GPU; what a GPU refuses to record is seen without one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support import rotation
from support.packing_cases import EVEN_TASK, TASK, WAITING, every_structure, request_for, runner_of, sized
from support.packing_traces import train, worst
from support.text_cases import WRITERS
from support.text_cases import requests as text_requests
from support.tiny_backbones import EVERY_BACKBONE, parameters
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from search_space.dimensions import Site
from search_space.published import published_method
from trial_runner.attachment.inputs import on_device
from trial_runner.packs import lane
from trial_runner.packs.graphs import Recorder, StepGraphs
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import Reading, TrialRequest
from trial_runner.runner import TorchRunner

# a family takes a minute or more, for every operation is looked at
OTHERS = tuple(family for family in EVERY_BACKBONE if family != "roberta")
OTHER_WRITERS = tuple(family for family in WRITERS if family != "gpt2")

Tensors = Mapping[str, Tensor]

FROM_THE_HOST = frozenset({"lift_fresh", "lift"})
"""What numbers of Python become: a copy from memory that a graph cannot read again."""

UNRECORDABLE = {"deberta-v2": {"lift_fresh"}}
"""Operations that graphs refuse, by family: transformers makes its numbers of buckets tensors at every step."""


class Replayer(Recorder):
    """Records a function as a GPU does: what it computed with stays, and replaying fills the same results again."""

    def __init__(self, error: RuntimeError | None = None, warm: int = 0) -> None:
        super().__init__(run=warm)
        self.records = self.replays = 0
        self._error = error

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        if self._error is not None:
            raise self._error
        self.records += 1
        results = {name: torch.empty(3) for name in ("losses",)}

        def replay() -> None:
            self.replays += 1
            for name, tensor in function().items():
                results[name].copy_(tensor)

        return replay, results


def doubled(inputs: Tensors) -> Tensors:
    return {"losses": 2 * inputs["x"].sum(dim=1)}


def batch(value: float, width: int = 4) -> Tensors:
    return {"x": torch.full((3, width), value)}


@pytest.mark.parametrize(
    ("steps", "widths", "warm", "counts"),
    [
        pytest.param(8, (4,), 0, (3, 1, 4), id="one shape is recorded once"),
        pytest.param(12, (4, 5), 0, (3, 2, 7), id="each shape from its first step on"),
        # what a pass makes when it is first computed must not be made while a step is recorded
        pytest.param(4, (4,), 3, (4, 1, 2), id="one step as it is where others have warmed the worker"),
    ],
)
def test_steps_are_recorded_by_their_shapes_and_run_on_their_own_inputs(steps, widths, warm, counts):
    recorder = Replayer(warm=warm)
    graphs = StepGraphs(doubled, recorder)
    given = [(value, widths[value % len(widths)]) for value in range(steps)]
    found = [graphs.run(batch(value, width))["losses"] for value, width in given]
    assert [each.tolist() for each in found] == [[2.0 * value * width] * 3 for value, width in given], "none is shared"
    assert (recorder.run, recorder.recorded, recorder.replayed) == counts
    assert (recorder.records, recorder.replays) == (counts[1], counts[1] + counts[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [RuntimeError("operation not permitted when stream is capturing"), torch.OutOfMemoryError("no memory")],
    ids=["refused", "no_memory"],
)
def test_unrecordable_step_runs_eagerly(error, caplog):
    recorder = Replayer(error)
    graphs = StepGraphs(doubled, recorder)
    found = [graphs.run(batch(value))["losses"].tolist() for value in range(8)]
    assert found == [[8.0 * value] * 3 for value in range(8)]
    assert len(caplog.records) == 1, "said once"
    assert recorder.run == 8


class Refused(TorchDispatchMode):
    """Finds the operations that cannot be part of a graph: they wait for the device, or read numbers of the host."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.read: dict[int, StorageWeakRef] = {}
        self._made: set[int] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        is_by_mask = name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            one is not None and one.dtype == torch.bool for one in args[1]
        )
        if name in WAITING | FROM_THE_HOST or is_by_mask:
            self.found.add(name)
        for one in _storages((args, kwargs)):
            if one.cdata not in self._made:
                self.read.setdefault(one.cdata, one)
        results = func(*args, **(kwargs or {}))
        self._made |= {one.cdata for one in _storages(results)} - self.read.keys()
        return results


def _storages(values: Any) -> list[StorageWeakRef]:
    return [StorageWeakRef(one.untyped_storage()) for one in tree_leaves(values) if isinstance(one, Tensor)]


class Watcher(Recorder):
    """Computes where a GPU would record, and as libraries then do; keeps what a GPU would refuse.

    Attributes:
        read: Memory that what was recorded reads or writes and that was there before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.read: list[StorageWeakRef] = []

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        with pytest.MonkeyPatch.context() as patch, Refused() as refused:
            patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            results = function()
        self.refused |= refused.found
        self.read.extend(refused.read.values())
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
def test_watcher_finds_operations_that_graphs_refuse(function, found):
    watcher = Watcher()
    inputs = torch.ones(3)
    watcher.record(lambda: {"losses": function(inputs)})
    assert watcher.refused == found


def recorded_as_watched(runner: TorchRunner, requests: Sequence[TrialRequest], steps: int) -> tuple[TrialPack, Watcher]:
    """Train a pack by some steps; return it with its watcher."""
    watcher = Watcher()
    pack = TrialPack(runner.frozen, runner.objective, slots=len(requests), recorder=watcher)
    for request in requests:
        pack.admit(request)
    results = pack.advance(steps)
    assert all(isinstance(result, Reading) for result in results), results
    return pack, watcher


def measured_at(request: TrialRequest, *steps: int) -> TrialRequest:
    return replace(request, plan=replace(request.plan, steps=steps[-1], evaluate_at_steps=steps))


PADDED = (TASK, 0.1, 12)
GRAPHED = [
    pytest.param("roberta", *PADDED, id="roberta-padded_with_dropout"),
    pytest.param("roberta", EVEN_TASK, 0.0, 6, id="roberta-even"),
    *(pytest.param(family, *PADDED, id=family, marks=pytest.mark.slow) for family in rotation.parts(OTHERS)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "task", "dropout", "steps"), GRAPHED)
def test_steps_are_capturable_and_evaluation_frees_no_input(family, task, dropout, steps, tiny_backbone):
    """Test steps before and after the first recording: a batch of another size must leave no traces."""
    runner = runner_of(tiny_backbone(family, dropout), precision="fp32", task=task)
    requests = [
        measured_at(request_for(one, trial, steps=100), 3, 5, 100)
        for trial, one in enumerate(rotation.sixth(every_structure(runner.backbone.shape)))
        if not any(edit.site is Site.GLOBAL for edit in one.edits)
    ]
    pack, watcher = recorded_as_watched(runner, requests, steps)
    runner.close()
    assert watcher.recorded >= len(pack.lanes) > 0
    assert watcher.refused == UNRECORDABLE.get(family, set())
    assert len(watcher.read) > 100
    assert watcher.refused or not [one for one in watcher.read if one.expired()]


@pytest.mark.slow
@pytest.mark.parametrize("family", parameters("gpt2", *rotation.parts(OTHER_WRITERS), at_once=("gpt2",)))
def test_every_step_of_a_trial_that_writes_could_be_recorded(family, new_text_runner):
    runner = new_text_runner(family, dropout=0.1, precision="fp32", label_smoothing=0.1)
    on_cpu = runner.objective.batch("train", np.arange(4)).tensors
    assert not runner.objective.batch("train", np.arange(4)).has_fixed_shapes
    runner.objective.fewest_places = 256
    padded = runner.objective.batch("train", np.arange(4))
    assert padded.has_fixed_shapes
    assert len(padded.tensors["places"]) == 256 > len(on_cpu["places"])
    requests = [measured_at(one, 3, 5, 100) for one in text_requests(runner)]
    _, watcher = recorded_as_watched(runner, requests, 8)
    assert watcher.recorded > 0
    assert not watcher.refused
    assert not [one for one in watcher.read if one.expired()]


class Again(Recorder):
    """Records as a GPU does: nothing is computed then, and the same function is computed again at every replay."""

    def record(self, function: Callable[[], Tensors]) -> tuple[Callable[[], None], Tensors]:
        results: dict[str, Tensor] = {}

        return lambda: results.update(function()), results


@pytest.mark.slow
def test_slots_that_fill_the_places_of_others_learn_as_they_do_alone(tiny_backbone):
    """Test second trials of the same structures, with other rates, seeds, scales and moments."""
    runner = runner_of(tiny_backbone("roberta", 0.1), task=EVEN_TASK)
    structures = [
        one for one in every_structure(runner.backbone.shape) if all(edit.site is not Site.GLOBAL for edit in one.edits)
    ][::5]
    firsts = [request_for(one, trial, steps=6) for trial, one in enumerate(structures)]
    seconds = [request_for(one, len(firsts) + trial, steps=6) for trial, one in enumerate(structures)][::-1]
    again = Again()
    pack = TrialPack(runner.frozen, runner.objective, slots=len(firsts), recorder=again)
    found = train(pack, firsts), train(pack, seconds)
    assert again.recorded < again.replayed
    plain = [train(runner.open_pack(len(each)), each) for each in (firsts, seconds)]
    runner.close()
    for one, other, requests in zip(found, plain, (firsts, seconds), strict=True):
        assert worst(one, other, requests).share <= 1e-9, worst(one, other, requests)


@pytest.mark.slow
def test_recordings_and_their_memory_outlive_evicted_trials(tiny_backbone):
    runner = runner_of(tiny_backbone("roberta"), precision="fp32", task=EVEN_TASK)
    names = ("mam_adapter", "lora_qv", "ia3", "mam_adapter")
    forms = [published_method(name).structure(runner.backbone.shape) for name in names]
    requests = [measured_at(request_for(sized(one, 0), trial, steps=100), 4, 100) for trial, one in enumerate(forms)]
    pack, watcher = recorded_as_watched(runner, requests, 8)
    before = watcher.recorded
    pack.evict(0)  # another with the same structures comes at another place
    pack.evict(2)
    for trial in (12, 10):
        pack.admit(replace(requests[trial - 10], trial=trial, seed=trial))
    pack.advance(3)
    assert watcher.recorded == before, "the lane has the same layout"
    assert not [one for one in watcher.read if one.expired()]
    pack.evict(1)
    pack.admit(request_for(sized(forms[1], 1), 20, steps=100))
    pack.advance(6)
    assert watcher.recorded > before, "a wider one is another layout"
    runner.close()


def test_values_of_many_steps_are_copied_once(tiny_backbone, monkeypatch):
    """Test the copies to the device; numbers of Python would block on a GPU at every step."""
    runner = runner_of(tiny_backbone("roberta", 0.1), precision="fp32", task=EVEN_TASK)
    shape = runner.backbone.shape
    pack = runner.open_pack(2)
    for trial, name in enumerate(("lora_qv", "ia3")):
        pack.admit(request_for(sized(published_method(name).structure(shape), 0), trial, steps=100))
    pack.advance(1)
    copied: list[tuple[int, ...]] = []
    monkeypatch.setattr(
        lane, "on_device", lambda values, device: copied.append(values.shape) or on_device(values, device)
    )
    monkeypatch.delattr(torch, "tensor")
    pack.advance(4)
    assert copied == [(4, 2, 3), (4, 2)], "rates and keys of all four steps"
    runner.close()


def test_a_gpu_is_given_pinned_memory_and_not_waited_for(monkeypatch):
    requested: list[Any] = []

    class Pinned:
        def to(self, device: torch.device, **how: bool) -> str:
            requested.append((device.type, how))
            return "there"

    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: Pinned())
    assert on_device(np.arange(3), torch.device("cuda")) == "there"  # type: ignore[comparison-overlap]
    assert requested == [("cuda", {"non_blocking": True})]
    assert on_device(np.arange(3), torch.device("cpu")).tolist() == [0, 1, 2]
