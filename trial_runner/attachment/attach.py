"""Attachment of deltas to the ports of a frozen backbone, and their removal without a trace.

`Attachment` puts hooks on a backbone once; the active delta set is switched per forward pass, so that many
trials can share the backbone. Without an active set every hook returns its tensor unchanged.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from search_space.backbones import BackboneFamily, PortLocation, PortTable
from search_space.backbones.shape import BackboneShape, Sublayer
from search_space.dimensions import NormPlacement, Port, Site, StackKind
from trial_runner.attachment.attention import tap_attention, untap_attention
from trial_runner.attachment.forwards import replace_forward
from trial_runner.attachment.head_edits import HeadEdits
from trial_runner.attachment.prompt_hooks import PromptHooks
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.whole_model.swap import swapped
from trial_runner.errors import AttachError
from trial_runner.packed.packed_deltas import PackedDeltas, PackedPlan, SlotRows

Handle = torch.utils.hooks.RemovableHandle
Location = tuple[str, str]


class _Tap:
    """Hooks of one sublayer: they capture tensors that edits read, and change tensors that edits write."""

    def __init__(self, attachment: "Attachment", sublayer: Sublayer, *, is_of_no_token: bool = False) -> None:
        self._attachment = attachment
        self._sublayer = sublayer
        self._is_of_no_token = is_of_no_token  # rows that all examples share, of which each slot gets its own
        self.values: dict[Port, SlotRows] = {}
        self.heads = HeadEdits(self.plan, self.values, lambda: attachment.real)

    def plan(self) -> PackedPlan | None:
        """Return the plan of the active deltas for this sublayer; None without any."""
        active = self._attachment.active
        return None if active is None else active.plans.get(self._sublayer)

    def _pass(self, ports: tuple[Port, ...], module: nn.Module, tensor: Tensor) -> Tensor:
        plan = self.plan()
        if plan is None:
            return tensor
        for port in ports:
            if port in plan.parallel or port in plan.sequential:
                tensor = self._apply(plan, port, tensor, module)
            if port in plan.reads:
                self.values[port] = SlotRows(tensor, plan.slots)
        return tensor

    def _apply(self, plan: PackedPlan, port: Port, h: Tensor, module: nn.Module) -> Tensor:
        """Apply the parallel edits of a port, summed, then the sequential ones in order."""
        for edits in plan.parallel.get(port, ()):
            h = self.heads.compose(edits, h)
        for edits in plan.sequential.get(port, ()):
            # on post-LN backbones the Pfeiffer adapter reads the sum normalised (He et al. 2022, released code)
            is_normed = port is Port.SUM and self._attachment.shape.norm is NormPlacement.POST
            h = self.heads.compose(edits, h, module.forward(h) if is_normed else None)
        return h

    def hooks(self, module: nn.Module, side: str, ports: Mapping[PortLocation, tuple[Port, ...]]) -> Handle:
        """Register one hook on a side of a module, for all ports there."""

        def change(tensor: Tensor) -> Tensor:
            plan = self.plan()
            if plan is None:
                return tensor
            if self._is_of_no_token:
                tensor = tensor.expand(plan.slots, -1, -1)  # (K, P, D)
            for location, some in ports.items():
                tensor = _on_part(location, tensor, partial(self._pass, some, module))
            return tensor

        def before(_: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            return (change(arguments[0]), *arguments[1:])

        def after(_: nn.Module, __: tuple[Any, ...], output: Any) -> Any:
            if isinstance(output, tuple):
                return (change(output[0]), *output[1:])
            return change(output)

        return module.register_forward_pre_hook(before) if side == "input" else module.register_forward_hook(after)


def _on_part(location: PortLocation, tensor: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change one of several slices of the last axis; return the tensor itself if nothing changes."""
    if len(location.shares) == 1:
        return change(tensor)
    parts = list(torch.split(tensor, location.sizes(tensor.shape[-1]), dim=-1))
    changed = change(parts[location.part])
    if changed is parts[location.part]:
        return tensor
    parts[location.part] = changed
    return torch.cat(parts, dim=-1)


class Attachment:
    """Hooks on the ports of a frozen backbone.

    Args:
        model: Base model, loaded with the attention implementation `trial_runner.attachment.attention.ATTENTION`.

    Raises:
        AttachError: If the model lacks a port.
    """

    def __init__(self, model: nn.Module, family: BackboneFamily, shape: BackboneShape) -> None:
        """Register the hooks."""
        self.active: PackedDeltas | None = None
        self.real: Tensor | None = None
        self._model = model
        self.shape = shape
        self._table = family.ports(shape)
        self._handles: list[Handle] = []
        self._tapped: list[nn.Module] = []
        self._taps: list[_Tap] = []
        self._prompts: PromptHooks | None = None
        try:
            self._attach(model, self._table)
            self._prompts = PromptHooks(model, self._table, shape, lambda: self.active.prompt if self.active else None)
            if shape.kind is StackKind.ENCODER:
                # after prompts have put their rows before the mask
                self._handles.append(model.register_forward_pre_hook(self._see_mask, with_kwargs=True))
        except AttributeError as error:
            self.detach()
            raise AttachError(f"a {family.name} backbone must have all ports of its family; got: {error}.") from error

    def _see_mask(self, model: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Record the mask of real tokens of an encoder, for gates of a sample's mean."""
        given = inspect.signature(model.forward).bind(*positional, **named).arguments if self.active else {}
        self.real = given.get("attention_mask")

    def _attach(self, model: nn.Module, table: PortTable) -> None:
        for site in (Site.ATTENTION, Site.FFN):
            for sublayer in self.shape.sublayers(site):
                block = model.get_submodule(table.layers[sublayer.stack].format(layer=sublayer.layer))
                tap = _Tap(self, sublayer)
                self._taps.append(tap)
                for (path, side), ports in _by_module(table, sublayer).items():
                    module = block.get_submodule(path) if path else block
                    self._handles.append(tap.hooks(module, side, ports))
                if sublayer.site in table.attention_modules:
                    inner = block.get_submodule(table.attention_modules[sublayer.site])
                    tap_attention(inner, tap.heads)
                    replace_forward(inner)
                    self._tapped.append(inner)
        for index, path in enumerate(table.stack_norms):
            sublayer = Sublayer(site=Site.STACK, stack="stack", layer=index)
            tap = _Tap(self, sublayer, is_of_no_token=path == table.relative_positions)
            self._taps.append(tap)
            location = PortLocation(path, "output")
            self._handles.append(tap.hooks(model.get_submodule(path), "output", {location: (Port.NORM,)}))

    @contextmanager
    def using(self, deltas: DeltaSet | PackedDeltas) -> Iterator[None]:
        """Apply deltas to every forward pass within the context; those of several slots to a block of rows each."""
        packed = deltas if isinstance(deltas, PackedDeltas) else PackedDeltas([deltas])
        weights = {} if packed.whole is None else packed.whole.weights()
        with swapped(self._model, weights) if weights else nullcontext(), self.resumed(packed):
            yield

    @contextmanager
    def resumed(self, packed: PackedDeltas) -> Iterator[None]:
        """Apply deltas as `using` does to a part of a pass that has whole blocks; weights stay."""
        before, self.active = self.active, packed
        try:
            yield
        finally:
            self.active = before
            for tap in self._taps:
                tap.heads.clear()

    def blocks(self) -> list[nn.Module]:
        """Return the blocks of all stacks, from the input to the output."""
        return [block for stack in stacks_of(self._model, self._table, self.shape) for block in stack]

    def detach(self) -> None:
        """Remove every hook; the model is as before."""
        for handle in self._handles:
            handle.remove()
        for module in self._tapped:
            untap_attention(module)
            vars(module).pop("forward", None)  # that of its class is there again
        if self._prompts is not None:
            self._prompts.remove()
        self._handles.clear()
        self._tapped.clear()
        self._taps.clear()
        self.active = None


def stacks_of(model: nn.Module, table: PortTable, shape: BackboneShape) -> list[list[nn.Module]]:
    """Return the blocks of every stack of a base model, from the input to the output."""
    found: dict[str, dict[int, nn.Module]] = {}
    for one in shape.sublayers(Site.FFN):
        path = table.layers[one.stack].format(layer=one.layer)
        found.setdefault(one.stack, {})[one.layer] = model.get_submodule(path)
    return [list(stack.values()) for stack in found.values()]


def _by_module(table: PortTable, sublayer: Sublayer) -> dict[Location, dict[PortLocation, tuple[Port, ...]]]:
    """Group the ports of a sublayer by the side of their module, in the order of the table."""
    found: dict[Location, dict[PortLocation, tuple[Port, ...]]] = {}
    for (stack, site, port), location in table.ports.items():
        if (stack, site) == (sublayer.stack, sublayer.site):
            some = found.setdefault((location.module, location.side), {})
            some[location] = (*some.get(location, ()), port)
    return found
