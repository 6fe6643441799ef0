"""Folding of a trained delta set: networks that are needed in training only are replaced by their output."""

from dataclasses import replace

import torch

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from trial_runner.deltas import DELTAS, DeltaModule
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.frozen_matrix import Frozen


def folded_configuration(configuration: Configuration) -> Configuration:
    """Return the configuration without networks for training only; it stores as many parameters."""
    edits = (replace(edit, form=DELTAS[edit.form.name].folded(edit.form)) for edit in configuration.edits)
    return Configuration(edits=tuple(edits))


@torch.no_grad()
def fold(deltas: DeltaSet, shape: BackboneShape, *, frozen: Frozen | None = None) -> DeltaSet:
    """Replace the networks of a trained delta set by the tables that they produce; the function stays the same.

    A prefix's reparameterization and a prompt's encoder are removed; all other parameters are copied.

    Args:
        deltas: Trained delta set.
        frozen: Weights of the base model by name; required by forms that are computed from them.
    """
    first = next(deltas.parameters(), None)
    folded = DeltaSet(
        folded_configuration(deltas.configuration),
        shape,
        seed=0,
        device="cpu" if first is None else first.device,
        dtype=torch.float32 if first is None else first.dtype,
        frozen=frozen,
    )
    own = dict(deltas.named_parameters()) | dict(deltas.named_buffers())
    for name, tensor in [*folded.named_parameters(), *folded.named_buffers()]:
        if name in own:
            tensor.copy_(own[name])
    modules = dict(deltas.named_modules())
    for name, module in folded.named_modules():
        if isinstance(module, DeltaModule) and name in modules:
            module.take(modules[name])
    return folded
