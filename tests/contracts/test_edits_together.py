"""The contract of edits over the product of all dimensions: a pairwise-complete cover of a thousand configurations.

Every configuration has an edit at every kind of sublayer of its backbone; blocks are chosen in turn.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
import torch
from support import rotation
from support.covers import covering_configurations, legal, pairs
from support.tiny_backbones import EVERY_BACKBONE, SOME_BACKBONES, checked, parameters, rig_of, rigs_of

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Positions, Site, StackKind
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, Phm, SoftmaxMemory
from search_space.layers import AllLayers, LayerRange
from search_space.published import METHODS
from trial_runner.port_discovery.edit_properties import build
from trial_runner.port_discovery.rig import Rig, sites_of

COVERS = 9
"""Complete covers, a thousand configurations together; a run takes one of them."""

WIDTH = 3
LAYERS = (AllLayers(), LayerRange(first=0, last=0), LayerRange(first=1, last=1))
ONE_VALUE = {
    "activation": ("tanh",),
    "norm": ("none",),
    "init": ("lora",),
    "reparameterization": ("none",),
    "factors": ("1",),
    "sharing": ("shared",),
}
KINDS = (Site.ENCODER_SELF, Site.DECODER_SELF, Site.CROSS, Site.FFN)


@pytest.fixture(scope="module", params=parameters(*SOME_BACKBONES))
def rig(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[Rig]:
    yield from rigs_of(tiny_backbone(request.param))


def sized(edit: Edit, layers: AllLayers | LayerRange) -> Edit:
    """Return the edit at some layers with a width of three steps, one more in the last of several layers."""
    form: Any = edit.form
    if not isinstance(form, SoftmaxMemory | Bottleneck | LowRank | Phm):
        return replace(edit, layers=layers)
    step = form.width_step
    is_reparameterized = getattr(form, "reparameterization", None) is not None
    widened = isinstance(layers, AllLayers) and not is_reparameterized
    return replace(edit, form=replace(form, width=WIDTH * step, widened=int(widened)), layers=layers)


def assert_pairs_are_complete(configurations: tuple[Configuration, ...], site: Site, shape: BackboneShape) -> None:
    points = {one.edits[0]: one for one in legal(site, shape)}
    used = [points[edit] for configuration in configurations for edit in configuration.edits if edit.site is site]
    possible = {pair for one in points.values() for pair in pairs(one)}
    assert {pair for one in used for pair in pairs(one)} == possible


@pytest.mark.slow
@pytest.mark.parametrize("cover", rotation.parts(range(COVERS)))
@pytest.mark.parametrize("rig", rotation.sixth(EVERY_BACKBONE), indirect=True)
def test_a_pairwise_complete_cover_of_the_product_keeps_the_contract(cover, rig):
    shape = rig.backbone.shape
    configurations = covering_configurations(shape, 1, seed=cover)
    sites = [site for site in KINDS if site in sites_of(rig.backbone)]
    assert_pairs_are_complete(configurations, sites[-1], shape)
    assert_pairs_are_complete(configurations, sites[0], shape)
    layers = cycle(LAYERS)
    for index, configuration in enumerate(configurations):
        if index % len(LAYERS) == 0:
            next(layers)  # so that no site always gets the same ones
        checked(rig, Configuration(edits=tuple(sized(edit, next(layers)) for edit in configuration.edits)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "site"),
    rotation.parts([(name, site) for name in ("roberta", "qwen3", "t5_gated") for site in (Site.ATTENTION, Site.FFN)]),
)
def test_every_edit_between_tensors_keeps_the_contract(name, site, tiny_backbone):
    """Test every form, write, read, block structure, bias and gate; other dimensions of a form have one value."""
    rig = rig_of(tiny_backbone(name))
    points = legal(site, rig.backbone.shape, ONE_VALUE)
    for one in points:
        checked(rig, Configuration(edits=(sized(one.edits[0], AllLayers()),)))
    rig.attachment.detach()
    assert len(points) > 300


@pytest.mark.slow
def test_every_published_method_keeps_the_contract(rig):
    shape = rig.backbone.shape
    valid = [method for method in METHODS.values() if method.invalid_reason(shape) is None]
    refused = set(METHODS) - {method.name for method in valid}
    assert ("unipelt" in refused) == (shape.kind is not StackKind.ENCODER or shape.positions is Positions.RELATIVE)
    assert refused & {"bitfit"} == (set() if shape.biased_ports else {"bitfit"})
    assert refused <= {"bitfit", "unipelt"} or (shape.lacks and not refused & {"lora_qv", "parallel_adapter_ffn"})
    for method in valid:
        edits = tuple(sized(edit, AllLayers()) for edit in method.structure(shape).edits)
        if edits:
            checked(rig, Configuration(edits=edits))


def test_no_edits_at_all_are_the_frozen_model(rig):
    deltas = build(rig, Configuration(edits=()))
    assert not list(deltas.parameters())
    assert torch.equal(rig.outputs(deltas), rig.frozen)
