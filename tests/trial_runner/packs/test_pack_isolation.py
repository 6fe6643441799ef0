"""No slot of a pack disturbs another: broken learning rates and parameters, eviction, admission, moving elsewhere."""

import dataclasses
import math
from collections.abc import Sequence

import pytest
import torch
from support import rotation
from support.packing_cases import every_structure, request_for, sized, twins
from support.packing_traces import TrialTrace, Watched, advance, alone, deviation, measured, tensors_of, train, watch
from torch import Tensor

from search_space.configuration import Configuration
from search_space.published import published_method
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import Failure, Reading, Snapshot, TrialRequest
from trial_runner.runner import TorchRunner

EXACT = 1e-9
STEPS = 12
METHODS = ("mam_adapter", "inducer_plus_lora_q", "houlsby_adapter", "compacter", "ia3", "prompt_tuning")
BROKEN_RATES = (0.0, 1e300, math.inf, math.nan)


def request_of(runner: TorchRunner, name: str, trial: int, *, variant: int = 0, **changes: object) -> TrialRequest:
    structure = published_method(name).structure(runner.backbone.shape)
    return request_for(sized(structure, variant), trial, steps=STEPS, **changes)


def neighbour_requests(runner: TorchRunner, name: str) -> list[TrialRequest]:
    """Three trials of one method with two bottlenecks, and others."""
    others = [other for other in METHODS if other != name][:2]
    same = [request_of(runner, name, trial, variant=trial % 2) for trial in range(3)]
    return [*same, *(request_of(runner, other, trial) for trial, other in enumerate(others, start=3))]


def opened(runner: TorchRunner, requests: Sequence[TrialRequest]) -> tuple[TrialPack, list[Watched]]:
    pack = runner.open_pack(len(requests))
    return pack, [watch(pack, request) for request in requests]


def assert_identical(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def assert_same(trace: TrialTrace, reference: TrialTrace) -> None:
    """Assert that trials were trained and measured identically."""
    assert deviation(trace, reference).share <= EXACT, deviation(trace, reference)
    assert measured(trace, reference).share <= EXACT


def assert_same_until_now(one: TrialPack, other: TrialPack, watched: Sequence[tuple[Watched, Watched]]) -> None:
    for mine, theirs in watched:
        assert mine.losses == theirs.losses
        assert_identical(tensors_of(one, mine.trial), tensors_of(other, theirs.trial))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mam_adapter", "inducer_plus_lora_q"])
@pytest.mark.parametrize("rate", BROKEN_RATES)
def test_no_learning_rate_disturbs_another_slot(name, rate, runner):
    """Bit-identical until the broken trial fails and leaves; then within the bounds of equality."""
    requests = neighbour_requests(runner, name)
    calm, calm_trials = opened(runner, requests)
    requests[1] = dataclasses.replace(requests[1], learning_rates=(rate, rate, rate))
    disturbed, trials = opened(runner, requests)
    pairs = [(one, other) for one, other in zip(trials, calm_trials, strict=True) if one.trial != 1]
    failures: list[Failure] = []
    for _ in range(STEPS):
        assert not advance(calm, [other for _, other in pairs])
        failures += advance(disturbed, [one for one, _ in pairs])
        if not failures or failures[0].step == pairs[0][0].state.step - 1:
            assert_same_until_now(disturbed, calm, pairs)
    for one, other in pairs:
        trace, reference = one.trace(disturbed), other.trace(calm)
        assert_same(trace, reference)
    if rate == 0:
        assert not failures
        assert trials[1].state.step == STEPS
        return
    (failure,) = failures
    assert failure.trial == 1
    assert 1 <= failure.step < 4
    assert "is nan" in failure.reason or "is inf" in failure.reason
    assert disturbed.free_slots == 1


def with_nan(snapshot: Snapshot) -> Snapshot:
    """Put one NaN into every tensor of the snapshot's deltas."""
    tensors = {name: tensor.clone() for name, tensor in snapshot.tensors.items() if isinstance(tensor, Tensor)}
    for name, tensor in tensors.items():
        if name.startswith("deltas."):
            tensor.view(-1)[-1] = math.nan
    return dataclasses.replace(snapshot, tensors=tensors)


def restored(runner: TorchRunner, requests: Sequence[TrialRequest], broken: int | None) -> TrialPack:
    """Return a pack of trials in their first states, one of them with NaNs."""
    pack = runner.open_pack(len(requests))
    for index, request in enumerate(requests):
        single = runner.open_pack(1)
        single.admit(request)
        snapshot = single.snapshot(request.trial)
        pack.restore(request, with_nan(snapshot) if index == broken else snapshot)
    return pack


def check_nan_stays(runner: TorchRunner, structure: Configuration) -> None:
    """Check a twin of another width and a LoRA in a pack with a trial with NaNs in all its tensors."""
    lora = published_method("lora_qv").structure(runner.backbone.shape)
    configurations = [*twins([structure]), sized(lora, 1)]
    requests = [request_for(each, trial, steps=STEPS) for trial, each in enumerate(configurations)]
    for broken in (0, 1):
        calm, disturbed = (restored(runner, requests, which) for which in (None, broken))
        assert not calm.advance(1)
        (failure,) = disturbed.advance(1)
        assert isinstance(failure, Failure)
        assert (failure.trial, failure.step) == (broken, 0)
        assert disturbed.free_slots == 1
        for trial in {0, 1, 2} - {broken}:
            assert_identical(tensors_of(disturbed, trial), tensors_of(calm, trial))
        assert not disturbed.advance(1)
        assert all(
            torch.isfinite(tensor).all()
            for trial in (1 - broken, 2)
            for tensor in tensors_of(disturbed, trial).values()
        )


@pytest.mark.parametrize("name", METHODS)
def test_parameters_that_are_nan_stay_where_they_are(name, runner):
    check_nan_stays(runner, published_method(name).structure(runner.backbone.shape))


@pytest.mark.slow
def test_parameters_of_every_structure_that_are_nan_stay_where_they_are(runner):
    for structure in rotation.sixth(every_structure(runner.backbone.shape)):
        try:
            check_nan_stays(runner, structure)
        except AssertionError as error:
            error.add_note(str(structure))
            raise


def test_a_trial_replaced_by_its_like_leaves_the_others_bit_identical(even_runner):
    requests = [request_of(even_runner, "mam_adapter", trial, variant=trial % 2) for trial in range(4)]
    calm, calm_trials = opened(even_runner, requests)
    changed, trials = opened(even_runner, requests)
    pairs = [(one, other) for one, other in zip(trials, calm_trials, strict=True) if one.trial != 1]
    for step in range(STEPS):
        if step == 5:
            changed.evict(1)
            changed.admit(dataclasses.replace(requests[1], trial=9, seed=99))
        assert not advance(calm, [other for _, other in pairs])
        assert not advance(changed, [one for one, _ in pairs])
        assert_same_until_now(changed, calm, pairs)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["leaves", "is replaced", "joins"])
def test_others_that_come_and_go_change_a_trial_by_rounding_alone(change, runner):
    requests = neighbour_requests(runner, "mam_adapter")
    pack = runner.open_pack(len(requests) + 1)
    trials = [watch(pack, request) for request in requests]
    staying = [each for each in trials if each.trial != 1]
    newcomer: Watched | None = None
    for step in range(STEPS):
        if step == 5:
            if change != "joins":
                pack.evict(1)
            if change != "leaves":
                newcomer = watch(pack, request_of(runner, "inducer", 7, variant=1))
        assert not advance(pack, staying)
    for each in staying:
        trace, reference = each.trace(pack), alone(runner, each.state.request)
        assert_same(trace, reference)
    if newcomer is not None:
        assert newcomer.state.step == STEPS - 5
        single = runner.open_pack(1)
        single.admit(newcomer.state.request)
        single.advance(STEPS - 5)
        for name, tensor in tensors_of(single, newcomer.trial).items():
            torch.testing.assert_close(tensors_of(pack, newcomer.trial)[name], tensor, rtol=EXACT, atol=1e-12)


@pytest.mark.slow
def test_a_pack_that_is_refilled_all_the_time_trains_each_trial_as_alone(runner):
    requests = [request_of(runner, name, trial, variant=trial % 2) for trial, name in enumerate(METHODS * 2)]
    requests = [dataclasses.replace(each, plan=plan_of(each, 3 + each.trial % 4)) for each in requests]
    for trace, request in zip(train(runner.open_pack(3), requests), requests, strict=True):
        reference = alone(runner, request)
        assert deviation(trace, reference).share <= EXACT, (deviation(trace, reference), request)


def plan_of(request: TrialRequest, steps: int) -> object:
    return dataclasses.replace(request.plan, steps=steps, evaluate_at_steps=(steps,))


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_a_trial_that_moves_to_another_pack_goes_on_as_it_would_have(name, tmp_path, runner):
    requests = neighbour_requests(runner, name)
    first, _ = opened(runner, requests)
    first.advance(5)
    path = runner.save(first.snapshot(1), tmp_path)
    second = runner.open_pack(4)
    second.admit(request_of(runner, "lora_qv", 20))
    second.advance(3)
    second.admit(request_of(runner, name, 21, variant=2 if name != "prompt_tuning" else 1))
    second.restore(dataclasses.replace(requests[1], attempt=2), runner.load(path))
    assert_identical(tensors_of(second, 1), tensors_of(first, 1))
    readings = [result for result in second.advance(STEPS) if result.trial == 1]
    reference = alone(runner, requests[1])
    assert [result.step for result in readings] == [reading.step for reading in reference.readings]
    state = tensors_of(second, 1)
    for reading, expected in zip(readings, reference.readings, strict=True):
        assert isinstance(reading, Reading)
        assert dict(reading.metrics) == pytest.approx(dict(expected.metrics), rel=EXACT)
        assert reading.train_loss == pytest.approx(expected.train_loss, rel=EXACT)
    trace = dataclasses.replace(reference, tensors=state)
    assert deviation(trace, reference).share <= EXACT, deviation(trace, reference)
