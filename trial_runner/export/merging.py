"""Edits folded into the weights of a backbone, which is then a plain model of `transformers`."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbones import Family, PortTable
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import Port, Site, StackKind
from search_space.merging import READ_BY, WRITTEN, unmergeable
from trial_runner.backbones import Backbone
from trial_runner.deltas.delta_set import DeltaSet, SublayerPlan
from trial_runner.errors import ExportError
from trial_runner.export.heads import TaskHead, write_head
from trial_runner.export.linear import LinearSlice
from trial_runner.huggingface import hub_access, quiet_transformers


@torch.no_grad()
def merge(model: nn.Module, deltas: DeltaSet, family: Family, shape: BackboneShape) -> None:
    """Fold trained deltas into the weights of a base model, in place.

    Args:
        model: The base model, with the weights that the deltas were trained on.
        deltas: Of a configuration that can be merged.

    Raises:
        ExportError: If an edit cannot be merged; it is named, and nothing has been changed.
    """
    obstacles = unmergeable(deltas.configuration, shape)
    if obstacles:
        listed = "; ".join(f"{name}: {why}" for name, why in obstacles.items())
        raise ExportError(f"every edit must be linear to be merged into the weights; got {listed}. Leave --merge out.")
    if deltas.whole is not None:
        named = dict(model.named_parameters())
        for name, weight in deltas.whole.weights().items():
            named[name].copy_(weight)
    table = family.ports(shape)
    for sublayer, plan in deltas.plans.items():
        if sublayer.site is Site.STACK:
            _merge_norm(model.get_submodule(table.stack_norms[sublayer.layer]), plan)
        else:
            _merge_sublayer(model, table, sublayer, plan)


def _merge_sublayer(model: nn.Module, table: PortTable, sublayer: Sublayer, plan: SublayerPlan) -> None:
    block = model.get_submodule(table.layers[sublayer.stack].format(layer=sublayer.layer))
    read_by = {written: read for read, written in READ_BY.items()}
    for port in WRITTEN:
        read = read_by.get(port, port)
        if not (plan.touches(port) or plan.touches(read)):
            continue
        location = table.ports[sublayer.stack, sublayer.site, port]
        linear = LinearSlice(block.get_submodule(location.module), location)
        for delta in plan.parallel.get(port, ()):
            linear.add(delta.affine())
        for delta in plan.sequential.get(port, ()):
            linear.follow(delta.affine(), replaces=delta.edit.gate.multiplies)
        for delta in reversed(plan.sequential.get(read, ()) if read is not port else ()):
            linear.precede(delta.affine(), replaces=delta.edit.gate.multiplies)
        linear.store()
    if plan.touches(Port.NORM):
        location = table.ports[sublayer.stack, sublayer.site, Port.NORM]
        _merge_norm(block.get_submodule(location.module), plan)


def _merge_norm(norm: nn.Module, plan: SublayerPlan) -> None:
    """Constants move the bias of a LayerNorm; nothing else writes one."""
    for delta in plan.sequential.get(Port.NORM, ()):
        bias, shift = norm.bias, delta.affine().shift
        if not isinstance(bias, Tensor) or shift is None:
            raise ExportError("a constant must have a bias to move; this LayerNorm has none. This is a bug.")
        bias.copy_(bias.double() + shift)


def write_merged(folder: Path, backbone: Backbone, deltas: DeltaSet, head: TaskHead | None) -> None:
    """Write a backbone with deltas in its weights as a folder that `transformers` loads, tokenizer and head included.

    An encoder is written as its base model, anything else with the language-model head of its checkpoint.

    Args:
        folder: Exists; see `new_folder`.
        backbone: Is left as it is.
        deltas: Of a configuration that can be merged.
        head: The task head, written beside the weights; None without one.

    Raises:
        ExportError: If an edit cannot be merged; it is named.
    """
    model: Any = copy.deepcopy(backbone.model)
    merge(model, deltas, backbone.family, backbone.shape)
    whole = model if backbone.shape.kind is StackKind.ENCODER else _with_language_model(backbone, model)
    with quiet_transformers():
        whole.save_pretrained(folder)
        backbone.load_tokenizer().save_pretrained(folder)
    if head is not None:
        write_head(folder, head)


def _with_language_model(backbone: Backbone, base: Any) -> Any:
    """The language model that a checkpoint holds, with the weights of a base model; the base model if it holds none."""
    import transformers

    from trial_runner.backbones.locate import source_of

    names = getattr(base.config, "architectures", None) or [type(base).__name__]
    kind: Any = getattr(transformers, names[0], None)
    if kind is None or kind is type(base):
        return base
    source = source_of(backbone.name)
    with hub_access(source), quiet_transformers():
        whole = kind.from_pretrained(source, dtype=base.dtype)
    weights: Mapping[str, Tensor] = base.state_dict()
    unknown = whole.base_model.load_state_dict(weights, strict=False).unexpected_keys
    if unknown:
        raise ExportError(f"{names[0]} must hold the weights of its base model; it lacks {unknown[0]}. This is a bug.")
    return whole
