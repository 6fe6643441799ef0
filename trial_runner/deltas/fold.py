"""What remains of a delta set when training is over: networks that only served training are folded away."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.forms import Bottleneck, EncodedPrompt, Prompt, SoftmaxMemory
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.softmax_memory import SoftmaxMemoryDelta, StackedBottleneck, StackedPrefix
from trial_runner.deltas.whole_model import IntrinsicDelta


def folded_configuration(configuration: Configuration) -> Configuration:
    """The configuration without networks that only serve training; it stores as many parameters."""
    return Configuration(edits=tuple(_folded(edit) for edit in configuration.edits))


def _folded(edit: Edit) -> Edit:
    match edit.form:
        case SoftmaxMemory(reparameterization=int()) | Bottleneck(reparameterization=int()):
            return replace(edit, form=replace(edit.form, reparameterization=None))
        case EncodedPrompt(width=width):
            return replace(edit, form=Prompt(width=width))
        case _:
            return edit


@torch.no_grad()
def fold(deltas: DeltaSet, shape: BackboneShape, *, frozen: Mapping[str, Tensor] | None = None) -> DeltaSet:
    """The same function with the tables that the networks produce in place of the networks.

    A prefix's reparameterization and a prompt's encoder are gone; all other parameters are copied.

    Args:
        deltas: A trained delta set.
        shape: Its backbone.
        frozen: Parameters of the base model by name; needed by forms of the whole model only.
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
    if kept.prompt is not None and deltas.prompt is not None:
        kept.prompt.table.copy_(deltas.prompt.rows())
    if isinstance(kept.whole, IntrinsicDelta) and isinstance(deltas.whole, IntrinsicDelta):
        kept.whole.seeds = deltas.whole.seeds
    modules = dict(deltas.named_modules())
    for name, module in kept.named_modules():
        source = modules.get(name)
        if isinstance(module, PortDelta) and isinstance(source, PortDelta):
            _take_table(module, source)
    return kept


def _take_table(kept: PortDelta, source: PortDelta) -> None:
    if isinstance(source.form, StackedPrefix) and isinstance(kept.form, SoftmaxMemoryDelta):
        keys, values = source.form.table()
        kept.form.keys.copy_(keys)
        kept.form.values.copy_(values)
    if isinstance(source.form, StackedBottleneck) and isinstance(kept.form, BottleneckDelta):
        keys, values = source.form.table()
        kept.form.down.copy_(keys.transpose(-1, -2))
        kept.form.up.copy_(values)
