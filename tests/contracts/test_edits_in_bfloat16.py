"""Every form and gate in float32 and under autocast to bfloat16: finite, trainable, and near what float64 computes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
import torch
from support.tiny_backbones import FEW_BACKBONES, SOME_FAMILIES, parameters, rig_of
from torch import Tensor

from search_space.configuration import Configuration
from search_space.edit import Edit
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.port_discovery.edit_properties import build, moved
from trial_runner.port_discovery.examples import examples_at
from trial_runner.port_discovery.rig import Rig, sites_of

# Relative to how far the frozen backbone itself is off. Measured: 20 and 6 at most.
BOUNDS = {"float32": 100, "bfloat16": 20}


@pytest.fixture(scope="module", params=parameters(*SOME_FAMILIES, at_once=FEW_BACKBONES))
def rigs(request: pytest.FixtureRequest, tiny_backbone: Callable[[str], Path]) -> Iterator[tuple[Rig, Rig]]:
    torch.set_num_threads(1)
    folder = tiny_backbone(request.param)
    exact, rough = rig_of(folder), rig_of(folder, precision="float32")
    yield exact, rough
    exact.attachment.detach()
    rough.attachment.detach()


def edits_of(rig: Rig) -> Iterator[Edit]:
    """Yield one edit of every form and of every gate, at each site where there is one."""
    covered: set[object] = set()
    for site in sites_of(rig.backbone):
        for edit in examples_at(site, rig.backbone.shape):
            side = "attention" if site.is_attention else site
            keys = {(side, edit.form.name), (side, edit.gate.name, edit.write)}
            if not keys <= covered:
                yield edit
            covered |= keys


def half_or_not(precision: str) -> AbstractContextManager[object]:
    return torch.autocast("cpu", dtype=torch.bfloat16) if precision == "bfloat16" else nullcontext()


def trained(rig: Rig, deltas: DeltaSet, precision: str) -> Tensor:
    """Return the outputs, after the delta parameters got finite gradients."""
    deltas.zero_grad()
    with half_or_not(precision), rig.attachment.using(deltas):
        hidden = rig.backbone.model(**rig.inputs).last_hidden_state
        outputs = rig.outputs_of(hidden, rig.inputs)
        outputs.float().square().mean().backward()
    for name, parameter in deltas.named_parameters():
        assert parameter.dtype == torch.float32, name
        assert parameter.grad is None or torch.isfinite(parameter.grad).all(), name
    assert any(parameter.grad is not None for parameter in deltas.parameters())
    return outputs.detach()


def error_of(found: Tensor, expected: Tensor) -> float:
    """Relative to the norm; not a number where one is not."""
    return ((found.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("precision", BOUNDS)
def test_lower_precisions_compute_nearly_the_same(rigs, precision):
    exact, rough = rigs
    with torch.no_grad(), half_or_not(precision):
        usual = error_of(rough.outputs(), exact.frozen)
    for edit in edits_of(exact):
        configuration = Configuration(edits=(edit,))
        deltas = moved(build(exact, configuration), by=0.1)
        again = build(rough, configuration, dtype=torch.float32)
        again.load_state_dict(deltas.state_dict())
        with torch.no_grad():
            expected = exact.outputs(deltas)
        assert error_of(trained(rough, again, precision), expected) < BOUNDS[precision] * usual, edit
    with torch.no_grad():
        assert torch.equal(rough.outputs(), rough.frozen)
