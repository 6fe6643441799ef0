"""Modules of equal structure with their parameters stacked: one call computes all of them.

Shapes: `G` modules of a stack.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import vmap

from search_space.configuration import edit_structure
from trial_runner.deltas import SharedDelta
from trial_runner.deltas.form_delta import Padding
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.deltas.whole_model.swap import locations_of, replaced


def by_slots(rows: Tensor, slots: int) -> Tensor:
    """Reshape ``(K B, ...)`` to ``(K, B, ...)``."""
    return rows.reshape(slots, rows.shape[0] // slots, *rows.shape[1:])


def for_examples(blocks: Tensor, rows: int) -> Tensor:
    """Repeat ``(K, ...)`` to ``(K B, ...)``, each block for an equal share of the rows."""
    return blocks.unsqueeze(1).expand(-1, rows // blocks.shape[0], *blocks.shape[1:]).flatten(0, 1)


class ModuleStack:
    """Several modules of one class, each with its own parameters, computed in one call.

    A single module is called directly and keeps its parameters. Parameters of several are copied into one tensor each,
    ``(G, ...)``, padded with zeros to the widest; `write_back` copies them back.

    Args:
        modules: Modules of one class and structure; only the axes in their ``paddings`` may differ.
        places: Slot of each module in the pass.
        copies_one: Whether to copy a single module, too.

    Attributes:
        is_single: Whether the stack is one module, used directly.
    """

    def __init__(self, modules: Sequence[nn.Module], places: Sequence[int], *, copies_one: bool = False) -> None:
        """Stack the parameters and buffers."""
        self.is_single = len(modules) == 1 and not copies_one
        self.modules = tuple(modules)
        self.places = tuple(places)
        self._paddings: Mapping[str, Padding] = getattr(modules[0], "paddings", {})
        self._own = [dict(module.named_parameters()) for module in modules]
        if self.is_single:
            self.parameters = self._own[0]
            self._constants: dict[str, Tensor] = {}
            self._locations = locations_of(modules[0], self.tensors)
            return
        self.parameters = {
            name: nn.Parameter(_stacked([one[name].detach() for one in self._own], self._paddings.get(name)))
            for name in self._own[0]
        }
        buffers = [dict(module.named_buffers()) for module in modules]
        self._constants = {
            name: _stacked([one[name] for one in buffers], self._paddings.get(name)) for name in buffers[0]
        }
        self._constants |= _real_rows(self._own, self._paddings)
        self._locations = locations_of(modules[0], self.tensors)

    @property
    def layout(self) -> Hashable:
        """Key that is equal for stacks of the same places and shapes; None for a single module used directly."""
        shapes = tuple((name, tensor.shape, tensor.dtype) for name, tensor in self.tensors.items())
        return None if self.is_single else (self.places, shapes)

    @torch.no_grad()
    def take(self, other: "ModuleStack") -> None:
        """Replace the modules by those of a stack with the same layout; values are copied into the existing memory."""
        self.modules, self._own, self._locations = other.modules, other._own, other._locations
        for name, tensor in self.tensors.items():
            tensor.copy_(other.tensors[name])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Parameters and buffers by name, ``(G, ...)``."""
        return {**self.parameters, **self._constants}

    def call(self, function: Callable[..., Any], *arguments: Any, shared: "Shared | None" = None) -> Any:
        """Call a function with each module and its arguments.

        Args:
            function: Function of a module and the arguments without the leading axis.
            arguments: Tensors ``(G, ...)``; anything else is passed unchanged to all.
            shared: Modules that the forms of the stacked edits refer to.

        Returns:
            Results of the function, every tensor with a leading axis ``G``.
        """
        if self.is_single and shared is None:
            inputs = [argument.squeeze(0) if isinstance(argument, Tensor) else argument for argument in arguments]
            return _with_axis(function(self.modules[0], *inputs))
        template: Any = self.modules[0]
        owned = self.tensors
        if self.is_single:
            owned = {name: tensor.unsqueeze(0) for name, tensor in owned.items()}
        shared_tensors = {} if shared is None else shared.tensors()
        axes = tuple(0 if isinstance(argument, Tensor) else None for argument in arguments)

        def one(tensors: tuple[dict[str, Tensor], dict[str, Tensor]], *inputs: Any) -> Any:
            with replaced(self._locations, [tensors[0][path] for path in owned]):
                if shared is None:
                    return function(template, *inputs)
                with replaced(locations_of(template.form.shared, tensors[1]), tensors[1].values()):
                    return function(template, *inputs)

        return vmap(one, in_dims=(0, *axes))((owned, shared_tensors), *arguments)

    def parts(self, index: int) -> Iterator[tuple[nn.Parameter, nn.Parameter, Callable[[Tensor], Tensor]]]:
        """Yield each parameter of a module, its stacked parameter, and a function that takes the module's part."""
        for name, own in self._own[index].items():
            stack = self.parameters[name]
            padding, place = self._paddings.get(name), None if self.is_single else index
            yield own, stack, partial(_part, shape=own.shape, index=place, padding=padding)

    @torch.no_grad()
    def write_back(self, index: int) -> None:
        """Copy a module's parameters out of the stack."""
        if not self.is_single:
            for own, stack, part in self.parts(index):
                own.copy_(part(stack))


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """References from each module of a stack to a module of another stack.

    Attributes:
        stack: Stack of the shared modules.
        rows: Index in it for each module, ``(G,)``; None if both have the same order.
    """

    stack: ModuleStack
    rows: Tensor | None

    def tensors(self) -> dict[str, Tensor]:
        """Return parameters and buffers of the shared modules, ``(G, ...)``."""
        held = self.stack.tensors
        if self.rows is None:
            return held
        return {name: tensor.index_select(0, self.rows) for name, tensor in held.items()}


def _part(stacked: Tensor, *, shape: torch.Size, index: int | None, padding: Padding | None) -> Tensor:
    """Return a view of a module's part of a stacked and padded tensor."""
    part = stacked if index is None else stacked[index]
    if padding is None:
        return part
    axis, size = padding.axis, shape[padding.axis]
    return part.narrow(axis, part.shape[axis] - size if padding.in_front else 0, size)


def _with_axis(result: Tensor | tuple[Tensor, ...]) -> Tensor | tuple[Tensor, ...]:
    """Return a tensor, or each of several, with a leading axis of one module."""
    return result.unsqueeze(0) if isinstance(result, Tensor) else tuple(one.unsqueeze(0) for one in result)


def tensors_in(value: object) -> Iterator[Tensor]:
    """Yield the tensors of nested lists, tuples and mappings."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_in(one)


def _real_rows(own: Sequence[Mapping[str, Tensor]], paddings: Mapping[str, Padding]) -> dict[str, Tensor]:
    """Return the masks of real rows of padded tables, by buffer name; none if all tables have one length."""
    found: dict[str, Tensor] = {}
    for name, padding in paddings.items():
        if padding.mask_name is None or name not in own[0]:
            continue
        lengths = [one[name].shape[padding.axis] for one in own]
        if len(set(lengths)) > 1:
            path, dot, _ = name.rpartition(".")
            found[f"{path}{dot}{padding.mask_name}"] = last_rows(lengths, max(lengths), own[0][name].device)
    return found


def last_rows(lengths: Sequence[int], rows: int, device: torch.device) -> Tensor:
    """Return the mask of real rows among some rows padded in front, ``(G, R)``."""
    begins = rows - torch.tensor(lengths, device=device)
    return torch.arange(rows, device=device) >= begins.unsqueeze(1)


def _stacked(parts: Sequence[Tensor], padding: Padding | None) -> Tensor:
    if padding is not None:
        width = max(part.shape[padding.axis] for part in parts)
        parts = [_padded(part, padding, width) for part in parts]
    return torch.stack(list(parts))


def _padded(part: Tensor, padding: Padding, width: int) -> Tensor:
    spare = width - part.shape[padding.axis]
    before, after = (spare, 0) if padding.in_front else (0, spare)
    return nn.functional.pad(part, (0, 0) * (-padding.axis - 1) + (before, after))


def structure(delta: PortDelta) -> Hashable:
    """Return a key equal for edits of one sublayer that can be computed together.

    Widths and fixed scales may differ.
    """
    shared = delta.form.shared
    of_shared = None if shared is None else shared_structure(shared)
    return edit_structure(delta.edit), _shapes(delta, delta.named_parameters()), of_shared, delta.form.layer


def shared_structure(shared: SharedDelta) -> Hashable:
    """Return a key that is equal for shared modules that can be computed together."""
    return type(shared), _shapes(shared, shared.named_parameters()), _shapes(shared, shared.named_buffers())


def _shapes(module: PortDelta | SharedDelta, tensors: Iterable[tuple[str, Tensor]]) -> Hashable:
    """Return the shapes of a module's tensors without the axes that may be padded."""
    widened = module.paddings
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for name, tensor in tensors:
        shape = list(tensor.shape)
        if name in widened:
            del shape[widened[name].axis]
        shapes.append((name, tuple(shape)))
    return tuple(shapes)
