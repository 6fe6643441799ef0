"""What remains of a delta set when training is over: networks that only served training are folded away."""

from dataclasses import replace

import torch

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from trial_runner.deltas import DELTAS, DeltaModule
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.frozen_matrix import Frozen


def folded_configuration(configuration: Configuration) -> Configuration:
    """The configuration without networks that only serve training; it stores as many parameters."""
    edits = (replace(edit, form=DELTAS[edit.form.name].folded(edit.form)) for edit in configuration.edits)
    return Configuration(edits=tuple(edits))


@torch.no_grad()
def fold(deltas: DeltaSet, shape: BackboneShape, *, frozen: Frozen | None = None) -> DeltaSet:
    """The same function with the tables that the networks produce in place of the networks.

    A prefix's reparameterization and a prompt's encoder are gone; all other parameters are copied.

    Args:
        deltas: A trained delta set.
        frozen: Weights of the base model by name; needed by forms that are computed of them.
    """
    some = next(deltas.parameters(), None)
    kept = DeltaSet(
        folded_configuration(deltas.configuration),
        shape,
        seed=0,
        device="cpu" if some is None else some.device,
        dtype=torch.float32 if some is None else some.dtype,
        frozen=frozen,
    )
    own = dict(deltas.named_parameters()) | dict(deltas.named_buffers())
    for name, tensor in [*kept.named_parameters(), *kept.named_buffers()]:
        if name in own:
            tensor.copy_(own[name])
    modules = dict(deltas.named_modules())
    for name, module in kept.named_modules():
        if isinstance(module, DeltaModule) and name in modules:
            module.take(modules[name])
    return kept
