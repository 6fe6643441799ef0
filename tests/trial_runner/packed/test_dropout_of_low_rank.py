"""Input dropout of low-rank maps during training, against the formula in float64."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support.tiny_backbones import rig_of

from search_space.dimensions import Port, Site
from search_space.published import published_method
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.packed.dropout import SlotDropout, dropping
from trial_runner.packed.packed_deltas import Group, PackedDeltas
from trial_runner.port_discovery.edit_properties import moved

P, KEYS, SCALE = 0.25, (11, 12, 13), 2.0
PLACES = (0, 2)
"""Slots that have LoRA, of three."""


@pytest.fixture
def groups(tiny_backbone: Callable[..., Path]) -> tuple[list[DeltaSet], list[Group]]:
    """Return the groups of every place of LoRA, for two slots with LoRA and one without it between them."""
    shape = rig_of(tiny_backbone("roberta")).backbone.shape
    methods = ("lora_qv", "houlsby_adapter", "lora_qv")
    configurations = [published_method(name).structure(shape) for name in methods]
    deltas = [DeltaSet(one, shape, seed=seed, dtype=torch.float64) for seed, one in enumerate(configurations)]
    for one in deltas:
        moved(one, seed=3, by=0.3)
    plans = PackedDeltas(deltas).plans
    found = [
        group
        for sublayer, plan in plans.items()
        if sublayer.site is Site.ENCODER_SELF
        for port in (Port.Q, Port.V)
        for one in plan.parallel[port]
        for group in one
    ]
    return deltas, found


def mask_of(group: Group, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the mask of ones: 0, or 1 / (1 - p)."""
    with dropping(SlotDropout(torch.tensor(KEYS), of_low_rank=P)):
        dropped = group.with_input_dropout(torch.ones(shape, dtype=torch.float64))
    assert dropped is not None
    return dropped


def test_low_rank_dropout_gradients_equal_the_formula(groups):
    group = groups[1][0]
    draw = torch.Generator().manual_seed(0)
    z, h, up = (torch.randn(2, 3, 5, 16, generator=draw, dtype=torch.float64) for _ in range(3))
    with dropping(SlotDropout(torch.tensor(KEYS), of_low_rank=P)):
        composed = group.call("compose", h, group.with_input_dropout(z), None, None)
    composed.backward(up)  # type: ignore[no-untyped-call]
    dropped = z * mask_of(group, z.shape)
    stacked = group.stack.parameters
    for slot in range(2):
        a, b = stacked["form.a"][slot].detach(), stacked["form.b"][slot].detach()
        rows, cotangent = dropped[slot].flatten(0, 1), up[slot].flatten(0, 1)
        expected = h[slot].flatten(0, 1) + SCALE * (rows @ a) @ b
        torch.testing.assert_close(composed[slot].flatten(0, 1), expected, rtol=1e-12, atol=1e-12)
        for name, gradient in (("a", rows.T @ (cotangent @ b.T)), ("b", (rows @ a).T @ cotangent)):
            found = stacked[f"form.{name}"].grad
            assert found is not None
            torch.testing.assert_close(found[slot], SCALE * gradient, rtol=1e-12, atol=1e-12)
    assert group.with_input_dropout(z) is z, "all of it is seen outside of training"


def test_the_share_is_kept_and_places_slots_and_steps_see_others(groups):
    shape = (2, 40, 20, 16)
    masks = [mask_of(group, shape) for group in groups[1]]
    for mask in masks:
        assert set(mask.unique().tolist()) == {0.0, 1 / (1 - P)}
        count = mask.numel()
        assert abs(float((mask == 0).sum()) - P * count) < 5 * (P * (1 - P) * count) ** 0.5
    every = [mask[slot] != 0 for mask in masks for slot in range(2)]
    for place, one in enumerate(every):
        for other in every[:place]:
            both = float((one & other).sum())
            assert abs(both - (1 - P) ** 2 * one.numel()) < 5 * one.numel() ** 0.5, (
                "two masks know nothing of each other"
            )


def test_dropout_of_a_slot_is_independent_of_the_pack(groups):
    deltas, found = groups
    alone = PackedDeltas(deltas[2:]).plans
    plan = next(plan for sublayer, plan in alone.items() if sublayer.site is Site.ENCODER_SELF)
    (group,) = plan.parallel[Port.Q][0]
    slot_dropout = SlotDropout(torch.tensor(KEYS[2:]), of_low_rank=P)
    with dropping(slot_dropout):
        torch.nn.functional.dropout(torch.ones(4, 3), 0.5)
        mine = group.with_input_dropout(torch.ones((1, 3, 9, 16), dtype=torch.float64))
    assert mine is not None
    assert torch.equal(mine[0, :, :5], mask_of(found[0], (2, 3, 5, 16))[PLACES.index(2)])
