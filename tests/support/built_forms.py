"""Modules of forms and edits at one sublayer, built without a delta set."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import NormPlacement, StackKind
from search_space.edit import Edit
from search_space.forms import Form
from trial_runner.deltas import DELTAS, FormDelta, SharedDelta
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.form_delta import FormPlace
from trial_runner.deltas.gates import GATE_DELTAS
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.whole_model.whole_delta import FrozenWeights, WholeModelDelta

_SHAPE = BackboneShape(
    family="made_up",
    kind=StackKind.DECODER,
    norm=NormPlacement.PRE,
    encoder_layers=0,
    decoder_layers=2,
    width=12,
    query_heads=4,
    key_value_heads=2,
    head_width=4,  # d_q = 16, d_kv = 8
    ffn_width=20,
    gated_ffn=False,
    parameters=10_000,
    biased_ports=frozenset(),
    stack_norms=0,
)

Module = TypeVar("Module", bound=nn.Module)


def made_up_shape(**changes: Any) -> BackboneShape:
    """Return the shape of a small decoder that is no real model."""
    return replace(_SHAPE, **changes)


def nudged(module: Module, by: float) -> Module:
    """Move every parameter of a module from its start by a normal draw."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += by * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
    return module


def build_form(
    edit: Edit,
    width: int,
    shape: BackboneShape,
    generator: torch.Generator,
    *,
    shared: SharedDelta | None = None,
    index: int = 0,
) -> FormDelta:
    place = FormPlace(blocks=blocks_of(edit, shape), width=width, shared=shared, index=index)
    return DELTAS[edit.form.name](edit, place, generator)


def build_shared(edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> SharedDelta:
    return DELTAS[edit.form.name].shares(edit.form).build(edit, layers, shape, generator)


def build_delta(
    edit: Edit, width: int, shape: BackboneShape, generator: torch.Generator, *, shared: SharedDelta | None = None
) -> PortDelta:
    return GATE_DELTAS[edit.gate.name](edit, build_form(edit, width, shape, generator, shared=shared), shape, generator)


def build_whole(form: Form, frozen: Mapping[str, Tensor], generator: torch.Generator) -> WholeModelDelta:
    return DELTAS[form.name](form, FrozenWeights(frozen), generator)


def draw(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def assert_equal(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)
