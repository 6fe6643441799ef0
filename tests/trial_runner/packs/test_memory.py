"""Packs that run out of memory: fewer slots at once, no trial lost, the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from support.packing_cases import BATCH, TASK, request_for, sized
from support.packing_traces import deviation, measured, train, watch
from torch import Tensor, nn

from search_space.published import published_method
from trial_runner.requests import Failure, TrialRequest
from trial_runner.runner import TorchRunner

EXACT = 1e-9
ROUNDED = 1e-6
"""Logits are measured in float32, and sums of them in another order."""
SLOTS = 6
STEPS = 6
METHODS = ("mam_adapter", "lora_qv", "mam_adapter", "ia3", "houlsby_adapter", "compacter")


def requests_for(runner: TorchRunner) -> list[TrialRequest]:
    structures = [published_method(name).structure(runner.backbone.shape) for name in METHODS]
    return [request_for(sized(each, trial % 2), trial, steps=STEPS) for trial, each in enumerate(structures)]


def assert_same(traces: list[Any], references: list[Any], requests: list[TrialRequest], *, within: float) -> None:
    """Assert that trials were trained identically, and measured within a bound."""
    for trace, reference, request in zip(traces, references, requests, strict=True):
        assert deviation(trace, reference).share <= EXACT, (deviation(trace, reference), request)
        assert measured(trace, reference).share <= within


def exhausted() -> None:
    raise torch.OutOfMemoryError("tried to allocate more than there is")


@contextmanager
def memory_for(runner: TorchRunner, rows: int, *, when: str = "forward") -> Iterator[list[int]]:
    """Limit the rows that fit the device's memory; yield the numbers of rows of passes that fit.

    Args:
        runner: Runner with the backbone.
        rows: Largest number that fits.
        when: Moment in a training step, or a measurement; ``always`` is the forward pass of either.
    """
    row_counts: list[int] = []

    def before(_: nn.Module, __: tuple[Any, ...], inputs: dict[str, Any]) -> None:
        is_in_question = {"forward": torch.is_grad_enabled(), "measuring": not torch.is_grad_enabled()}
        number = len(inputs["input_ids"])
        if is_in_question.get(when, when == "always") and number > rows:
            exhausted()
        row_counts.append(number)

    def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
        hidden: Tensor = output.last_hidden_state
        if when == "backward" and hidden.requires_grad and len(hidden) > rows:
            hidden.register_hook(lambda _: exhausted())

    handles = (
        runner.backbone.model.register_forward_pre_hook(before, with_kwargs=True),
        runner.backbone.model.register_forward_hook(after),
    )
    try:
        yield row_counts
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["forward", "backward"])
@pytest.mark.parametrize("together", [1, 2, 3, 5])
def test_a_pack_that_does_not_fit_goes_on_with_fewer_slots_at_once(when, together, runner):
    requests = requests_for(runner)
    references = train(runner.open_pack(SLOTS), requests)
    pack = runner.open_pack(SLOTS)
    with memory_for(runner, together * BATCH, when=when) as row_counts:
        trials = [watch(pack, request) for request in requests]
        results = [result for _ in range(STEPS) for result in pack.advance(1)]
    assert not [result for result in results if isinstance(result, Failure)]
    assert [each.state.step for each in trials] == [STEPS] * SLOTS
    assert max(row_counts) >= BATCH
    assert pack.free_slots <= 0
    for each, reference in zip(trials, references, strict=True):
        trace = each.trace(pack)
        assert deviation(_without_losses(trace), _without_losses(reference)).share <= EXACT, each.state.request
    for request in requests:
        pack.evict(request.trial)
    assert 1 <= pack.free_slots <= together


def _without_losses(trace: Any) -> Any:
    return type(trace)(losses=(), readings=(), tensors=trace.tensors)


@pytest.mark.slow
def test_a_pack_in_which_a_newcomer_does_not_fit_gives_no_more_slots(runner):
    """Test that trials are admitted until the memory is full; then the pack keeps its size."""
    requests = requests_for(runner)
    references = train(runner.open_pack(SLOTS), requests)
    with memory_for(runner, 2 * BATCH):
        pack = runner.open_pack(SLOTS)
        traces = train(pack, requests, arrivals=[0, 0, 2, 2, 2, 2])
    assert 1 <= pack.free_slots <= 2
    assert_same(traces, references, requests, within=EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2 * len(TASK.splits["validation"]), 7, 2])
def test_out_of_memory_evaluation_uses_smaller_batches(runner, rows):
    """Test that the pack keeps the size that its steps allow, and measures slots one by one where necessary."""
    requests = requests_for(runner)
    references = train(runner.open_pack(SLOTS), requests)
    pack = runner.open_pack(SLOTS)
    with memory_for(runner, rows, when="measuring") as row_counts:
        traces = train(pack, requests)
    if rows > 2:
        assert pack.most_together == SLOTS
        assert 1 < max(number for number in row_counts if number != BATCH * SLOTS) <= rows
    assert_same(traces, references, requests, within=ROUNDED)


@pytest.mark.slow
def test_trial_that_does_not_fit_alone_fails_with_a_reason(runner):
    pack = runner.open_pack(2)
    for request in requests_for(runner)[:2]:
        pack.admit(request)
    with memory_for(runner, 0):
        failures = pack.advance(1)
    assert sorted(failure.trial for failure in failures) == [0, 1]
    for failure in failures:
        assert isinstance(failure, Failure)
        assert "memory" in failure.reason
    assert pack.free_slots == 1


def test_another_error_is_no_want_of_memory(runner):
    def broken(*_: Any) -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    pack = runner.open_pack(2)
    for request in requests_for(runner)[:2]:
        pack.admit(request)
    handle = runner.backbone.model.register_forward_pre_hook(broken)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        pack.advance(1)
    handle.remove()
