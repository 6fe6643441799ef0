"""Deltas of several slots, applied together to the rows of a pass at each sublayer.

Shapes: `K` slots of the pass, `G` of them in a group, `B` examples of a slot. The rows of a pass are the slots'
examples, slot by slot.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn

from search_space.backbones.shape import Sublayer
from search_space.dimensions import Port
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.deltas.port_delta import PortDelta
from trial_runner.errors import AttachError
from trial_runner.packed.dropout import active_dropout
from trial_runner.packed.packed_prompt import PackedPrompt
from trial_runner.packed.stacks import ModuleStack, Shared, by_slots, last_rows, shared_structure, structure


class SlotRows:
    """Tensor ``(K B, ...)`` with access to the rows of some slots.

    Its gradient is assembled once for any number of groups.
    """

    def __init__(self, tensor: Tensor, slots: int) -> None:
        """Store the tensor."""
        self.tensor = tensor
        self._slots = slots
        self._blocks: tuple[Tensor, ...] | None = None

    def take(self, places: Sequence[int]) -> Tensor:
        """Return the rows of some slots, ``(G, B, ...)``."""
        if len(places) == self._slots:
            return by_slots(self.tensor, self._slots)
        if self._blocks is None:
            self._blocks = by_slots(self.tensor, self._slots).unbind(0)
        if len(places) == 1:
            return self._blocks[places[0]].unsqueeze(0)
        return torch.stack([self._blocks[place] for place in places])


class Group:
    """Edits of equal structure of some slots at one sublayer.

    Args:
        stack: Modules of the edits.
        slots: Number of slots K.
        shared: Modules shared with other sublayers; None without.
        number: Number of their position: the sublayer, the port, and the index among a slot's edits of it.

    Attributes:
        edit: Edit of the first slot; the others differ only in width and fixed scale.
        gate: Class of the modules, given by their gate.
        is_table: Whether the forms are tables of keys and values.
        index: `places` on the device.
    """

    def __init__(self, stack: ModuleStack, slots: int, shared: Shared | None, *, number: int = 0) -> None:
        """Join the modules with the slots."""
        self._first: PortDelta = stack.modules[0]  # type: ignore[assignment]
        self.edit = self._first.edit
        self.gate = type(self._first)
        self.is_table = self._first.form.is_table
        self._number = number
        self.stack = stack
        self.places = stack.places
        self.slots = slots
        self._shared = shared
        # made once, and of slots, not of rows: recordings of steps read it for as long as they live
        trained = (*stack.tensors.values(), *(() if shared is None else shared.stack.tensors.values()))
        self.index = torch.tensor(stack.places, device=trained[0].device if trained else None)

    @property
    def layout(self) -> Hashable:
        """Layout of the group, as in `PackedDeltas.layout`."""
        rows = None if self._shared is None or self._shared.rows is None else tuple(self._shared.rows.tolist())
        lengths = tuple(self.lengths()) if self.gate.is_prefix else ()
        return structure(self._first), self.stack.layout, rows, lengths

    def spread(self, mine: Tensor) -> Tensor:
        """Return ``(G, B, ...)`` as ``(K B, ...)``, zero in the rows of other slots."""
        if len(self.places) == self.slots:
            return mine.flatten(0, 1)
        blocks = dict(zip(self.places, mine.unbind(0), strict=True))
        nothing = torch.zeros_like(mine[0])
        return torch.cat([blocks.get(place, nothing) for place in range(self.slots)])

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of all modules of `PortDelta`; tensors are the group's rows, ``(G, B, ...)``."""

        def of_module(module: nn.Module, *given: Any) -> Any:
            return getattr(module, method)(*given)

        return self.stack.call(of_module, *arguments, shared=self._shared)

    def with_input_dropout(self, z: Tensor | None) -> Tensor | None:
        """Return the input after the dropout of low-rank maps, if it is active."""
        slot_dropout = active_dropout() if self._first.form.has_input_dropout else None
        return z if slot_dropout is None or z is None else slot_dropout.drop_low_rank_input(z, self.index, self._number)

    def lengths(self) -> list[int]:
        """Return the number of rows of each prefix."""
        return [module.table()[0].shape[-2] for module in self.stack.modules]  # type: ignore[operator]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prefix:
    """Rows before the keys and values of an attention module, for each of K equal blocks of rows.

    Attributes:
        keys: ``(K, N_kv, R, d_h)``.
        values: ``(K, N_kv, R, d_h)``.
        visible: Mask of each block's own rows, ``(K, R)``; None for all.
        share: Factor of keys and values for each sample, ``(K B, 1, 1, 1)``; None without one.
    """

    keys: Tensor
    values: Tensor
    visible: Tensor | None
    share: Tensor | None = None


@dataclass(slots=True)
class PackedPlan:
    """Edits of a pass at one sublayer.

    A round has at most one edit of each slot, all of one port: they change different rows.

    Attributes:
        slots: Number of slots K.
        parallel: Rounds of edits of a port that read another one.
        sequential: Rounds of edits of a port that read itself, or nothing, in order.
        reads: Ports whose tensors must be kept.
        lse: Edits with log-sum-exp gates of the attention logits; prefixes are in no round.
    """

    slots: int
    parallel: dict[Port, list[list[Group]]] = field(default_factory=dict)
    sequential: dict[Port, list[list[Group]]] = field(default_factory=dict)
    reads: set[Port] = field(default_factory=set)
    lse: list[Group] = field(default_factory=list)
    _lengths: list[int] | None = None
    _visible: Tensor | None = None

    @property
    def layout(self) -> Hashable:
        """Layout of one sublayer, as in `PackedDeltas.layout`."""
        sides = tuple(
            (port, tuple(tuple(group.layout for group in one) for one in rounds))
            for side in (self.parallel, self.sequential)
            for port, rounds in side.items()
        )
        return len(self.parallel), sides, frozenset(self.reads), tuple(group.layout for group in self.lse)

    def prefix(self) -> Prefix | None:
        """Return the rows before the keys of each slot; shorter prefixes, and none, are padded in front and masked."""
        groups = [group for group in self.lse if group.gate.is_prefix]
        if not groups:
            return None
        # each (G, N, R, d_h), the shorter ones padded in front
        tables: list[tuple[Tensor, Tensor]] = [group.call("table") for group in groups]
        rows = max(keys.shape[-2] for keys, _ in tables)
        if self._lengths is None:
            own = {
                place: length for group in groups for place, length in zip(group.places, group.lengths(), strict=True)
            }
            self._lengths = [own.get(place, 0) for place in range(self.slots)]
        both = [_by_slot(groups, [table[index] for table in tables], rows, self.slots) for index in (0, 1)]
        if self._visible is None and any(length != rows for length in self._lengths):
            self._visible = last_rows(self._lengths, rows, both[0].device)  # (K, R)
        return Prefix(keys=both[0], values=both[1], visible=self._visible)


def _by_slot(groups: Sequence[Group], tables: Sequence[Tensor], rows: int, slots: int) -> Tensor:
    """Join the tables of several groups, ``(K, N, R, d_h)``."""
    if len(groups) == 1 and len(groups[0].places) == slots:
        return tables[0]
    nothing = tables[0].new_zeros((*tables[0].shape[1:-2], rows, tables[0].shape[-1]))
    found = [nothing] * slots
    for group, table in zip(groups, tables, strict=True):
        padded = nn.functional.pad(table, (0, 0, rows - table.shape[-2], 0))
        for place, own in zip(group.places, padded.unbind(0), strict=True):
            found[place] = own
    return torch.stack(found)


class PackedDeltas:
    """Deltas of `K` slots, grouped by structure at every port.

    Args:
        deltas: Delta set of each slot; a change of the whole model must be the only one.
        copies_all: Whether modules without equals are copied as stacks are, and not used directly.

    Attributes:
        plans: Edits at each sublayer.
        prompt: Rows before the embedded input; None without a prompt.
        whole: Change of the whole model's weights; None without one.
        stacks: All trained modules except a change of the whole model.
    """

    def __init__(self, deltas: Sequence[DeltaSet], *, copies_all: bool = False) -> None:
        """Group the edits."""
        if len(deltas) > 1 and any(one.whole is not None for one in deltas):
            raise AttachError("a change of the whole model must be alone in a pass; got other deltas, too.")
        self.whole = deltas[0].whole
        self.stacks: list[ModuleStack] = []
        self._slots = len(deltas)
        self._copies_all = copies_all
        self._shared_stacks: dict[int, tuple[ModuleStack, int]] = {}
        self._stack_shared(deltas)
        prompts = [one.prompt for one in deltas]
        self.prompt = (
            PackedPrompt(prompts, copies_all=copies_all) if any(prompt is not None for prompt in prompts) else None
        )
        self.stacks.extend(() if self.prompt is None else self.prompt.stacks)
        sublayers = dict.fromkeys(sublayer for one in deltas for sublayer in one.sublayers)
        self.plans: dict[Sublayer, PackedPlan] = {
            sublayer: self._plan(sublayer, [one.sublayers.get(sublayer, []) for one in deltas])
            for sublayer in sublayers
        }

    def _stack_shared(self, deltas: Sequence[DeltaSet]) -> None:
        """Stack each module that edits of several sublayers share once, those at attention's learning rate separately.

        Modules of one slot are never stacked together, so that a single one is used directly.
        """
        by_structure: dict[Hashable, dict[int, tuple[int, nn.Module]]] = {}
        for place, one in enumerate(deltas):
            turns = Counter[Hashable]()
            for kind, shared in _shared_modules(one):
                by_structure.setdefault((kind, turns[kind]), {})[id(shared)] = (place, shared)
                turns[kind] += 1
        for members in by_structure.values():
            places, modules = zip(*members.values(), strict=True)
            stack = self._stack(modules, places)
            self._shared_stacks |= {id(module): (stack, row) for row, module in enumerate(modules)}

    def _stack(self, modules: Sequence[nn.Module], places: Sequence[int]) -> ModuleStack:
        stack = ModuleStack(modules, places, copies_one=self._copies_all)
        self.stacks.append(stack)
        return stack

    @property
    def layout(self) -> Hashable:
        """Key that is equal for deltas with the same kernel launches on tensors of equal shapes.

        None if a module is used directly.
        """
        stacks = tuple(stack.layout for stack in self.stacks)
        if None in stacks or self.whole is not None:
            return None
        plans = tuple((sublayer, plan.layout) for sublayer, plan in self.plans.items())
        shared_stack = tuple(shared_structure(stack.modules[0]) for stack, _ in self._shared_stacks.values())  # type: ignore[arg-type]
        return stacks, plans, shared_stack, None if self.prompt is None else self.prompt.lengths

    def _plan(self, sublayer: Sublayer, slots: Sequence[Sequence[PortDelta]]) -> PackedPlan:
        """Group the edits of all slots at a sublayer; the order within each slot is kept."""
        packed = PackedPlan(slots=self._slots)
        packed.reads.update(port for some in slots for one in some for port in one.reads)
        packed.lse.extend(self._grouped([[one for one in some if one.is_prefix] for some in slots]))
        for side, is_sequential in (("parallel", False), ("sequential", True)):
            edits = [
                [one for one in some if one.is_sequential is is_sequential and not one.is_prefix] for some in slots
            ]
            for port in dict.fromkeys(one.edit.write for some in edits for one in some):
                of_port = [[one for one in some if one.edit.write is port] for some in edits]
                place = f"{sublayer.site} {sublayer.stack} {sublayer.layer} {side} {port}"
                rounds = [
                    self._grouped([one[turn : turn + 1] for one in of_port], crc32(f"{place} {turn}".encode()))
                    for turn in range(max(map(len, of_port)))
                ]
                getattr(packed, side)[port] = rounds
                packed.lse.extend(group for one in rounds for group in one if group.edit.gate.logits is not None)
        return packed

    def _grouped(self, lists: Sequence[Sequence[PortDelta]], number: int = 0) -> list[Group]:
        """Return one group per structure among at most one edit of each slot."""
        by_structure: dict[Hashable, list[tuple[int, PortDelta]]] = {}
        for place, some in enumerate(lists):
            for delta in some:
                shared = delta.form.shared
                shared_stack = None if shared is None else id(self._shared_stacks[id(shared)][0])
                by_structure.setdefault((structure(delta), shared_stack), []).append((place, delta))
        groups = []
        for members in by_structure.values():
            places, modules = zip(*members, strict=True)
            stack = self._stack(modules, places)
            groups.append(Group(stack, self._slots, self._shared_rows(modules), number=number))
        return groups

    def _shared_rows(self, modules: Sequence[PortDelta]) -> Shared | None:
        shared = [module.form.shared for module in modules]
        if shared[0] is None or self._shared_stacks[id(shared[0])][0].is_single:
            return None
        stack = self._shared_stacks[id(shared[0])][0]
        rows = [self._shared_stacks[id(one)][1] for one in shared]
        index = None
        if rows != list(range(len(stack.modules))):
            device = next(iter(stack.tensors.values())).device
            index = torch.tensor(rows, device=device)
        return Shared(stack=stack, rows=index)


def _shared_modules(deltas: DeltaSet) -> Iterator[tuple[Hashable, nn.Module]]:
    """Yield each module that edits of several sublayers share, with a key equal for modules stacked together."""
    at_attention = {id(module) for module in deltas.attention.modules()}
    visited = set[int]()
    for sublayer, some in deltas.sublayers.items():
        for delta in sorted(some, key=lambda one: (one.edit.gate.logits is None, one.is_sequential)):
            shared = delta.form.shared
            if shared is not None and id(shared) not in visited:
                visited.add(id(shared))
                where = sublayer.site if shared.is_of_one_site else id(shared) in at_attention
                yield (where, shared_structure(shared)), shared
