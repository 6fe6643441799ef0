"""The contract of edits: every form and gate, at every site, on every family (`trial_runner.port_discovery`)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from support.tiny_backbones import BACKBONES, SOME_FAMILIES, checked, parameters, rig_of, rigs_of

from search_space.backbones import FAMILIES
from search_space.configuration import Configuration
from search_space.dimensions import Port, Positions, Site, StackKind
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import FORMS, LowRank
from search_space.gates import GATES, Add, ConvexSampleGate, SampleGate
from trial_runner.port_discovery.edit_properties import build, moved
from trial_runner.port_discovery.examples import FORM_EXAMPLES, GATE_EXAMPLES, examples_at
from trial_runner.port_discovery.rig import Rig, sites_of


@pytest.fixture(
    scope="module", params=parameters(*SOME_FAMILIES, at_once=("roberta", "distilbert", "bart", "gpt2", "qwen3"))
)
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone(request.param))


def test_every_family_has_a_backbone():
    assert set(BACKBONES) == set(FAMILIES)


def test_every_example_has_its_form_or_gate_and_a_site(rig):
    shape = rig.backbone.shape
    edits = [edit for site in sites_of(rig.backbone) for edit in examples_at(site, shape)]
    for name, examples in FORM_EXAMPLES.items():
        assert {form.name for _, form, _ in examples(shape)} <= {name}
    for name, examples in GATE_EXAMPLES.items():
        assert {gate.name for _, _, gate in examples(shape)} == {name}
    impossible = set() if shape.biased_ports else {"const"}
    assert {edit.form.name for edit in edits} == set(FORMS) - impossible
    has_samples = shape.kind is StackKind.ENCODER and shape.positions is not Positions.RELATIVE
    of_samples = set() if has_samples else {SampleGate.name, ConvexSampleGate.name}
    assert {edit.gate.name for edit in edits} == set(GATES) - of_samples


@pytest.mark.slow
def test_every_example_keeps_the_contract(rig):
    for site in sites_of(rig.backbone):
        for edit in examples_at(site, rig.backbone.shape):
            checked(rig, Configuration(edits=(edit,)))


def hooks_of(model: torch.nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


@pytest.mark.parametrize("name", parameters(*SOME_FAMILIES))
def test_detaching_leaves_no_trace(name, tiny_backbone):
    rig = rig_of(tiny_backbone(name))
    weights = {key: tensor.clone() for key, tensor in rig.backbone.model.state_dict().items()}
    edits = [next(examples_at(site, rig.backbone.shape)) for site in sites_of(rig.backbone)]
    deltas = moved(build(rig, Configuration(edits=tuple(edits))))
    assert not torch.allclose(rig.outputs(deltas), rig.frozen)
    rig.attachment.detach()
    assert hooks_of(rig.backbone.model) == 0
    with torch.no_grad():
        assert torch.equal(rig.outputs(), rig.plain)
    for key, tensor in rig.backbone.model.state_dict().items():
        assert torch.equal(tensor, weights[key]), key


def test_edit_that_breaks_a_rule_is_not_built(rig):
    edit = Edit(site=Site.ATTENTION, write=Port.Q, read=Port.X_ATTN, form=LowRank(width=1_000), gate=Add())
    with pytest.raises(InvalidEditError) as caught:
        build(rig, Configuration(edits=(edit,)))
    assert caught.value.rule == "V15"
