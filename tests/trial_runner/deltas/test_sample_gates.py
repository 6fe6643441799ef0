"""Gates of one number per sample: what they multiply with, by formulas over single samples without padding."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.built_forms import nudged
from support.edits import edit
from support.tiny_backbones import rigs_of
from torch import Tensor

from search_space.configuration import Configuration
from search_space.dimensions import Heads, Port
from search_space.edit import Edit
from search_space.forms import LowRank, SoftmaxMemory
from search_space.gates import ConvexGate, ConvexSampleGate, FixedScale, SampleGate
from search_space.layers import LayerRange
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.port_discovery.edit_properties import build
from trial_runner.port_discovery.rig import Rig

INPUT_IDS = torch.randint(5, 200, (3, 9), generator=torch.Generator().manual_seed(0))
LENGTHS = (9, 6, 2)
MASK = torch.arange(9) < torch.tensor(LENGTHS).unsqueeze(1)
LOW_RANK = LowRank(width=3)
PREFIX = SoftmaxMemory(width=3, heads=Heads.KEY_VALUE)
WITHIN = 1e-12


@pytest.fixture(scope="module")
def rig(tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone("roberta"))


def deltas_of(rig: Rig, *edits: Edit) -> DeltaSet:
    return nudged(build(rig, Configuration(edits=edits)), 0.5)


@torch.no_grad()
def outputs(rig: Rig, deltas: DeltaSet, *, sample: int | None = None) -> list[Tensor]:
    """Return the outputs of the real tokens of each sample, or of one alone without its padding."""
    if sample is None:
        hidden = rig.hidden(deltas, {"input_ids": INPUT_IDS, "attention_mask": MASK})
        return [row[:length] for row, length in zip(hidden, LENGTHS, strict=True)]
    return [rig.hidden(deltas, {"input_ids": INPUT_IDS[sample : sample + 1, : LENGTHS[sample]]})[0]]


def first_gate(deltas: DeltaSet, rig: Rig, sample: int) -> Tensor:
    """Compute the gate of the first layer, whose input no edit has changed."""
    module = next(module for module in deltas.modules() if isinstance(module, PortDelta))
    ids = INPUT_IDS[sample : sample + 1, : LENGTHS[sample]]
    read = rig.backbone.model.get_submodule("embeddings")(input_ids=ids)[0]
    factor = module.factor
    assert factor is not None
    each = torch.sigmoid(read @ factor.weight.squeeze(-1) + factor.bias)  # type: ignore[operator]
    return each.mean()


def of_first_layer(one: Edit) -> Edit:
    return replace(one, layers=LayerRange(first=0, last=0))


@torch.no_grad()
@pytest.mark.parametrize("is_prefix", [False, True])
def test_sample_gate_multiplies_by_mean_over_real_tokens(rig, is_prefix):
    """Test that the gate scales a low-rank map, and the keys and values of a prefix."""
    at = (Port.HEAD, Port.Q, PREFIX) if is_prefix else (Port.Q, Port.X_ATTN, LOW_RANK)
    gated = deltas_of(rig, of_first_layer(edit(*at, ConvexSampleGate() if is_prefix else SampleGate())))
    own = dict(gated.named_parameters())
    for sample, found in enumerate(outputs(rig, gated)):
        share = first_gate(gated, rig, sample)
        gate = ConvexGate() if is_prefix else FixedScale(value=float(share))
        plain = deltas_of(rig, of_first_layer(edit(*at, gate)))
        for name, parameter in plain.named_parameters():
            parameter.copy_(own[name] * share if is_prefix else own[name])
        for alone in (plain, gated):
            (expected,) = outputs(rig, alone, sample=sample)
            torch.testing.assert_close(found, expected, rtol=0, atol=WITHIN)


@torch.no_grad()
def test_in_a_pack_each_slot_has_its_own_and_those_without_have_none(rig):
    gates = (ConvexSampleGate(), ConvexGate(), ConvexSampleGate())
    slots = [deltas_of(rig, edit(Port.HEAD, Port.Q, PREFIX, gate)) for gate in gates]
    slots.append(deltas_of(rig, edit(Port.Q, Port.X_ATTN, LOW_RANK, SampleGate())))
    rows = {"input_ids": INPUT_IDS.repeat(len(slots), 1), "attention_mask": MASK.repeat(len(slots), 1)}
    together = rig.hidden(PackedDeltas(slots), rows).chunk(len(slots))
    for found, deltas in zip(together, slots, strict=True):
        expected = outputs(rig, deltas)
        torch.testing.assert_close(found[MASK], torch.cat(expected), rtol=0, atol=WITHIN)
