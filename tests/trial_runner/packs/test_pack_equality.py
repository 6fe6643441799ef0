"""Trials in packs against the same trials alone: every form, insertion and gate, float64 and float32, no dropout."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import rotation
from support.packing_cases import BATCH, every_structure, legal, request_for, runner_of, sized, twins, way_of
from support.packing_traces import alone, deviation, measured, train, worst
from support.tiny_backbones import EVERY_FAMILY, has_short_windows, in_turn

from search_space.configuration import Configuration
from search_space.dimensions import Port, Site
from search_space.forms import FORMS
from search_space.gates import GATES
from search_space.parameter_counts.counts import count
from search_space.published import published_method
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks import Split

EXACT = 1e-9
CANCELLED = 1e-7
"""Bound where gradients cancel, as those of a bias of keys do, which shifts all logits alike.

AdamW divides the rounding that is left, 1e-16, by its epsilon of 1e-8: 1e-8 of the learning rate per step, for a dozen.
"""
SINGLE = 1e-5
MEASURED = 1e-6
"""A validation loss may be computed in float32."""

SLOTS = 8
SHARES = 4
FEW = ("prefix_tuning", "mam_adapter", "lora_qv", "inducer", "compacter", "ia3", "houlsby_adapter", "prompt_tuning")


def published(runner: TorchRunner, names: tuple[str, ...] = FEW) -> list[Configuration]:
    """Return the methods that the backbone can have, with two bottlenecks each."""
    shape = runner.backbone.shape
    methods = [published_method(name) for name in names if name != "prompt_tuning" or not has_short_windows(runner)]
    return twins([method.structure(shape) for method in methods if method.invalid_reason(shape) is None])


def in_packs(configurations: list[Configuration]) -> list[list[Configuration]]:
    return [configurations[start : start + SLOTS] for start in range(0, len(configurations), SLOTS)]


def requests_for(
    configurations: list[Configuration], *, steps: int, first: int = 0, rate: float = 1e-3
) -> list[TrialRequest]:
    return [request_for(one, trial, steps=steps, rate=rate) for trial, one in enumerate(configurations, start=first)]


def assert_packed_equals_alone(
    runner: TorchRunner, requests: list[TrialRequest], *, slots: int = SLOTS, within: float = EXACT
) -> None:
    """Compare packs that are refilled in the midst of their trials with packs of one."""
    is_rough = within >= SINGLE
    late = [0 if index < slots - 2 else 1 + index % 3 for index in range(len(requests))]
    packed = train(runner.open_pack(slots), requests, arrivals=late)
    references = [alone(runner, request) for request in requests]
    found = worst(packed, references, requests, is_rough=is_rough)
    assert found.share <= within, found
    for trace, reference, request in zip(packed, references, requests, strict=True):
        assert measured(trace, reference).share <= MEASURED, (measured(trace, reference), request.configuration)


def test_the_structures_are_every_form_insertion_and_gate_at_either_side(runner: TorchRunner) -> None:
    shape = runner.backbone.shape
    structures = every_structure(shape)
    edits = [edit for structure in structures for edit in structure.edits]
    for site in (Site.ATTENTION, Site.FFN):
        way = {one.edits[0]: way_of(one) for one in legal(site, shape)}
        assert len(set(way.values())) > 40
        assert {way[edit] for edit in edits if edit in way} == set(way.values())
    assert {type(edit.form) for edit in edits} == set(FORMS.values())
    assert {type(edit.gate) for edit in edits} == set(GATES.values())
    narrow, wide, *_ = twins(structures)
    assert count(wide, shape).trained > count(narrow, shape).trained


@pytest.mark.slow
def test_a_pack_of_twelve_trials_equals_the_trials_alone(runner: TorchRunner) -> None:
    structures = [each for each in every_structure(runner.backbone.shape) if each.attention and each.ffn]
    mixed = [sized(each, variant) for variant in (0, 1) for each in structures[2::6]][:12]
    assert len(mixed) == 12
    assert_packed_equals_alone(runner, requests_for(mixed, steps=16), slots=12)


@pytest.mark.slow
@pytest.mark.parametrize("share", rotation.parts(range(SHARES)))
def test_every_structure_in_a_pack_equals_itself_alone_over_50_steps(share: int, runner: TorchRunner) -> None:
    """Test twins of another width for every sixth structure.

    At larger learning rates some trials are chaotic: the rounding of one sum grows beyond the bound, alone as well.
    """
    structures = every_structure(runner.backbone.shape)
    cases = []
    for index, structure in enumerate(structures):
        cases.append(sized(structure, index % 3))
        if index % 6 == 0 and structure.attention:
            cases.append(sized(structure, 1))
    mine = cases[share * len(cases) // SHARES : (share + 1) * len(cases) // SHARES]
    assert len(mine) >= SLOTS
    for number, some in enumerate(in_packs(mine)):
        requests = requests_for(some, steps=50, first=100 * share + 10 * number, rate=2e-4)
        assert_packed_equals_alone(runner, requests, within=CANCELLED)


def has_bias_of_keys(configuration: Configuration) -> bool:
    """Return whether keys are shifted behind a gate that is nearly closed."""
    return any(
        edit.write is Port.K and edit.gate.name == "sigmoid" and getattr(edit.form, "bias", False)
        for edit in configuration.edits
    )


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "within"), [("fp64", CANCELLED), ("fp32", SINGLE)])
def test_structure_packed_with_a_wider_twin_equals_itself_alone(
    precision: str, within: float, tiny_backbone: Callable[..., Path]
) -> None:
    """Test a sixth of the structures in each run."""
    runner = runner_of(tiny_backbone("roberta"), precision=precision)
    cases = twins(rotation.sixth(every_structure(runner.backbone.shape)))
    if within >= SINGLE:  # of gradients that cancel float32 knows no digit
        cases = [one for one in cases if not has_bias_of_keys(one)]
    for number, some in enumerate(in_packs(cases)):
        requests = requests_for(some, steps=12, first=10 * number)
        assert_packed_equals_alone(runner, requests, within=within)
    runner.close()


def test_float32_packs_equal_trials_alone(tiny_backbone: Callable[..., Path]) -> None:
    runner = runner_of(tiny_backbone("roberta"), precision="fp32")
    requests = requests_for(published(runner)[:SLOTS], steps=20)
    assert_packed_equals_alone(runner, requests, within=SINGLE)
    runner.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", in_turn(*EVERY_FAMILY, at_once=("gpt2", "qwen3")))
def test_mixed_packs_of_every_family_equal_trials_alone(name: str, tiny_backbone: Callable[..., Path]) -> None:
    runner = runner_of(tiny_backbone(name))
    rate = 1e-5 if name.startswith("t5") else 1e-3  # prompts of a tiny T5 go anywhere at larger ones, alone as well
    requests = requests_for(published(runner), steps=4, rate=rate)
    assert_packed_equals_alone(runner, requests, slots=len(requests))
    runner.close()


@pytest.mark.slow
def test_shared_parameters_have_the_rate_of_their_side(runner: TorchRunner) -> None:
    """Kronecker factors are held by the first edit that has them: at attention, at the FFN, or at both."""
    compacter, at_ffn, lora = published(runner, ("compacter", "compacter_pp", "lora_qv"))[::2]
    turned = Configuration(edits=compacter.edits[::-1])
    assert [edit.site for edit in turned.edits] == [Site.FFN, Site.ATTENTION]
    for together in ([compacter, lora], [compacter, at_ffn], [turned, lora, at_ffn], [turned, compacter, at_ffn]):
        assert_packed_equals_alone(runner, requests_for(together, steps=6), slots=3)


def test_tables_of_two_sites_in_one_trial_are_trained_where_they_are(tiny_backbone: Callable[..., Path]) -> None:
    """Test MLPs of equal shapes at self- and cross-attention; alone, deltas are used in place and not copied."""
    runner = runner_of(tiny_backbone("bart"))
    prefix = published_method("prefix_tuning")
    shape = runner.backbone.shape
    configuration = prefix.configuration(shape, {"prefix_length": 3, "reparameterization_width": 5})
    deltas = DeltaSet(configuration, shape, seed=0, dtype=torch.float64)
    kinds = Counter(tuple(one.shape) for name, one in deltas.named_parameters() if name.endswith("embedding"))
    assert max(kinds.values()) > 1
    packed = PackedDeltas([deltas])
    assert {id(one) for stack in packed.stacks for one in stack.parameters.values()} == set(
        map(id, deltas.parameters())
    )
    both = [configuration, prefix.configuration(shape, {"prefix_length": 4, "reparameterization_width": 5})]
    two = PackedDeltas([DeltaSet(one, shape, seed=0, dtype=torch.float64) for one in both])
    assert all(stack.places == (0, 1) for stack in two.stacks)
    assert_packed_equals_alone(runner, requests_for(both, steps=6), slots=2)
    runner.close()


def test_many_steps_at_once_are_as_many_single_steps(runner: TorchRunner) -> None:
    requests = requests_for(published(runner, ("mam_adapter", "lora_qv", "prompt_tuning")), steps=12)
    at_once, singly = (runner.open_pack(len(requests)) for _ in range(2))
    for pack, request in product((at_once, singly), requests):
        pack.admit(request)
    results = [result for steps in (1, 4, 5, 9) for result in at_once.advance(steps)]
    expected = [result for _ in range(12) for result in singly.advance(1)]
    assert {(one.trial, one.step) for one in results} == {(one.trial, one.step) for one in expected}
    assert len(results) == len(expected)
    for request in requests:
        states = (pack.snapshot(request.trial).tensors for pack in (at_once, singly))
        for (name, tensor), (other_name, other_tensor) in zip(*(state.items() for state in states), strict=True):
            assert name == other_name
            torch.testing.assert_close(tensor, other_tensor, rtol=EXACT, atol=1e-12)


@pytest.mark.slow
def test_a_snapshot_has_the_shapes_of_the_trial_and_not_of_its_pack(runner: TorchRunner) -> None:
    """Test twins of other widths, which are padded to each other."""
    configurations = twins(every_structure(runner.backbone.shape)[::8])
    requests = requests_for(configurations, steps=4)
    pack = runner.open_pack(len(requests))
    for request in requests:
        pack.admit(request)
    pack.advance(1)
    for request in requests:
        single = runner.open_pack(1)
        single.admit(request)
        single.advance(1)
        assert shapes(pack, request.trial) == shapes(single, request.trial)
        trained = count(request.configuration, runner.backbone.shape).trained
        held = [tensor for name, tensor in pack.snapshot(request.trial).tensors.items() if name.startswith("deltas.")]
        assert sum(tensor.numel() for tensor in held if isinstance(tensor, torch.Tensor)) == trained


def shapes(pack: TrialPack, trial: int) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(tensor.shape)
        for name, tensor in pack.snapshot(trial).tensors.items()
        if isinstance(tensor, torch.Tensor)
    }


def rolled(runner: TorchRunner, *names: str) -> Any:
    """Shift the model's rows by one while it trains."""

    def shift(_: torch.nn.Module, arguments: tuple[Any, ...], inputs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        if torch.is_grad_enabled():
            inputs = inputs | {name: inputs[name].roll(1, dims=0) for name in names if name in inputs}
        return arguments, inputs

    return runner.backbone.model.register_forward_pre_hook(shift, with_kwargs=True)


def test_rows_shifted_by_one_are_noticed(runner: TorchRunner) -> None:
    """Negative control: most rows stay in their slots, and the trials are others all the same."""
    requests = requests_for(published(runner)[:4], steps=4)
    references = [alone(runner, request) for request in requests]
    handle = rolled(runner, "input_ids", "attention_mask")
    shifted = train(runner.open_pack(4), requests)
    handle.remove()
    straight = train(runner.open_pack(4), requests)
    for trace, other, reference in zip(shifted, straight, references, strict=True):
        assert deviation(trace, reference).share > 1e-3
        assert deviation(trace, reference, is_rough=True).share > 1e-3
        assert deviation(other, reference).share <= EXACT


@pytest.mark.slow
def test_another_order_of_a_batch_is_within_the_bounds(runner: TorchRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positive control: what a sum in another order changes, in trials alone, the comparison lets pass."""
    requests = requests_for(published(runner)[::2], steps=8)
    references = [alone(runner, request) for request in requests]
    batch = Split.batch

    def backwards(split: Split, indices: Any, *arguments: Any, **options: Any) -> Any:
        rows = np.asarray(indices)
        return batch(split, rows[::-1] if len(rows) == BATCH else rows, *arguments, **options)

    monkeypatch.setattr(Split, "batch", backwards)
    found = worst([alone(runner, request) for request in requests], references, requests)
    assert 0 < found.share <= EXACT, found


def test_trials_of_a_pack_have_learning_rates_and_plans_of_their_own(runner: TorchRunner) -> None:
    """Else one that got another's would not be noticed."""
    requests = requests_for(published(runner)[:SLOTS], steps=4)
    assert len({request.learning_rates for request in requests}) == SLOTS
    assert len({request.plan for request in requests}) == SLOTS


def test_packs_with_token_limits_equal_trials_alone(runner: TorchRunner) -> None:
    lengths = runner.objective.lengths("train")
    few = requests_for(published(runner, ("lora_qv", "prefix_tuning")), steps=9)
    bound = int(1.5 * lengths.max())
    bounded = [replace(one, plan=replace(one.plan, batch_size=6, batch_tokens=bound)) for one in few]
    pack = runner.open_pack(1)
    pack.admit(bounded[0])
    sizes = {len(pack.trial(0).order.examples(step)) for step in range(8)}
    assert len(sizes) > 1, "else nothing is bounded"
    assert_packed_equals_alone(runner, bounded)


@pytest.mark.parametrize(
    ("family", "of_backbone"), [("roberta", 0.1), pytest.param("qwen3", 0.0, marks=pytest.mark.slow)]
)
def test_packs_trained_with_dropout_of_low_rank_maps_equal_trials_alone(
    family: str, of_backbone: float, tiny_backbone: Callable[..., Path]
) -> None:
    runner = runner_of(tiny_backbone(family, of_backbone))
    methods = published(runner, ("lora_qv", "lora_ffn", "mam_adapter", "prompt_tuning"))
    few = requests_for(methods, steps=3)
    dropped = [replace(one, plan=replace(one.plan, lora_dropout=0.4)) for one in few]
    assert_packed_equals_alone(runner, dropped)
    (without,), (with_it,) = ([alone(runner, one)] for one in (few[0], dropped[0]))
    assert worst([with_it], [without], [few[0]]).share > 1e-3, "else nothing is dropped"
    (last,) = [number for number, one in enumerate(methods) if one == methods[-1]]
    same = worst([alone(runner, dropped[last])], [alone(runner, few[last])], [few[last]])
    assert same.share <= EXACT, "a prompt has no low-rank map, and the backbone drops what it dropped"
    runner.close()
