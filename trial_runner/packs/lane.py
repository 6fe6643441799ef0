"""Slots that are computed in one pass: their deltas and heads are stacked, their optimizer is one.

Shapes: `K` slots of the lane.
"""

import math
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from search_space.configuration import structures
from search_space.dimensions import StackKind
from trial_runner.attachment.frozen_model import CACHED_BYTES, FrozenModel, Pass
from trial_runner.attachment.inputs import on_device
from trial_runner.objectives import Objective, TrainingBatch
from trial_runner.packed.dropout import SlotDropout, dropping
from trial_runner.packed.packed_deltas import PackedDeltas
from trial_runner.packed.stacks import ModuleStack
from trial_runner.packs.graphs import Recorder, StepGraphs
from trial_runner.packs.optimizer import Owned, PackAdamW
from trial_runner.packs.slot import TrialSlot
from trial_runner.seeds import derived_seed
from trial_runner.training import Training

_HEAD = 2
WIDE_BYTES = 1 << 20
"""Bytes of an activation from which a slot's products are as fast alone on a CPU."""
_RATES, _KEYS = "learning rates", "dropout keys"

Parts = Sequence[tuple[int, TrainingBatch]]
"""Parts of a step, each with the number of examples of every slot before it."""


Failures = dict[TrialSlot, str]
"""Slots whose trials have failed, each with the reason in one line."""


def pass_of(frozen: FrozenModel, slots: Sequence[TrialSlot], *, copies_all: bool = False) -> Pass:
    """Stack slots for a pass; the stacks are copies.

    Args:
        frozen: Frozen backbone.
        slots: Slots, in the order of their rows.
        copies_all: Whether to copy modules that are alone in their stack, too.
    """
    return Pass(
        frozen=frozen,
        deltas=PackedDeltas([slot.deltas for slot in slots], copies_all=copies_all),
        heads=ModuleStack([slot.head for slot in slots], range(len(slots)), copies_one=copies_all),
        slots=len(slots),
    )


def computed_together(
    slots: Sequence[TrialSlot], frozen: FrozenModel, longest_tokens: int, *, most: int
) -> Iterator[list[TrialSlot]]:
    """Yield groups of slots that are computed in one pass.

    A change of the whole model shares no frozen product, so it is alone. Prompts lengthen every row of their lane, so
    they have one of their own. If a decoder's dropout counts their rows too, there is one for each length. If batches
    are bounded by tokens, slots whose buckets are in another order have batches of other sizes. On a CPU, slots with
    large products gain by sharing a pass only if they have equal structures and about equal widths. All are computed as
    wide as the widest.

    Args:
        slots: Slots to group.
        frozen: Frozen backbone.
        longest_tokens: Number of tokens of the longest training example.
        most: Largest number of slots of a pass.
    """
    counts_rows = frozen.has_dropout and frozen.shape.kind is StackKind.ENCODER_DECODER
    alike: dict[tuple[TrialSlot | None, int, tuple[int, ...], int, float, Hashable], list[TrialSlot]] = {}
    for slot in slots:
        plan, deltas = slot.request.plan, slot.deltas
        alone = None if deltas.whole is None else slot
        rows = 0 if deltas.prompt is None else deltas.prompt.length if counts_rows else 1
        examples = plan.examples_of(longest_tokens)
        kinds: Hashable = None
        if is_wide(frozen, examples, longest_tokens):  # about as wide: parameters as many but for a factor of two
            kinds = structures(slot.request.configuration), deltas.counts.trained.bit_length()
        sizes = slot.order.sizes_from(slot.step)
        alike.setdefault((alone, rows, sizes, examples, plan.lora_dropout, kinds), []).append(slot)
    for (_, _, _, examples, _, _), members in alike.items():
        widest = frozen.widest_bytes(examples, longest_tokens)
        passes = -(-len(members) // min(most, max(1, CACHED_BYTES // max(1, widest))))
        size = -(-len(members) // passes)
        yield from (members[start : start + size] for start in range(0, len(members), size))


def is_wide(frozen: FrozenModel, examples: int, longest_tokens: int) -> bool:
    """Return whether a slot's products on a CPU are so large that sharing a pass with unlike slots gains nothing."""
    return frozen.widest_bytes(examples, longest_tokens) > WIDE_BYTES


class Lane:
    """Training of some slots of a pack in one pass.

    A slot that is alone keeps its own parameters and `torch.optim.AdamW`. Those of several are copied into stacks, and
    `write_back` updates a slot; until then its own parameters and moments are those of the last time.

    A lane that records its steps computes with copies of everything, so that slots of the same layout can replace those
    that have left. Tensors that recordings read stay in place.

    Args:
        recorder: Recorder of steps; None runs them eagerly. A change of the whole model is never recorded.

    Attributes:
        layout: Key that is equal for lanes whose slots may replace each other; None if none may.
    """

    def __init__(
        self,
        slots: Sequence[TrialSlot],
        frozen: FrozenModel,
        objective: Objective,
        recorder: Recorder | None = None,
    ) -> None:
        """Stack the slots."""
        self.slots = list(slots)
        self._frozen = frozen
        self._objective = objective
        self._has_dropout = frozen.has_dropout
        is_recorded = recorder is not None and all(slot.deltas.whole is None for slot in self.slots)
        self.together = pass_of(frozen, self.slots, copies_all=is_recorded)
        self.layout = self._layout() if is_recorded else None
        self._optimizer: PackAdamW | None = None
        self._graphs: StepGraphs | None = None
        if len(self.slots) > 1 or is_recorded:
            self._optimizer = PackAdamW(self._owned(), self._plans())
            self._load_moments(self._optimizer)
        if recorder is not None and self._optimizer is not None:
            self._graphs = self._new_graphs(self._optimizer, recorder)
        self._unread: list[tuple[Tensor, Tensor]] = []

    def _layout(self) -> Hashable:
        deltas, heads = self.together.deltas.layout, self.together.heads.layout
        return None if deltas is None or heads is None else (deltas, heads, self.slots[0].order.sizes_from(0))

    def refill(self, other: "Lane") -> None:
        """Take the slots of a lane of the same layout, which must not be used afterwards."""
        self.slots = other.slots
        for held, new in zip(self._stacks, other._stacks, strict=True):
            held.take(new)
        if self._optimizer is not None:
            self._optimizer.restart(self._plans())
            self._load_moments(self._optimizer)

    def advance(self, steps: int) -> Failures:
        """Train every slot by some steps, none beyond its last one.

        A slot of several that fails stays in its place, so that the others compute the same values.
        """
        failures: Failures = {}
        tables = None if self._optimizer is None else self._tables(steps)
        for ahead in range(steps):
            began_at = time.perf_counter()
            if self._optimizer is None or tables is None:
                failures |= self._step_alone()
            else:
                self._step(self._optimizer, {name: table[ahead] for name, table in tables.items()})
            seconds = (time.perf_counter() - began_at) / len(self.slots)
            for slot in self.slots:
                slot.seconds += seconds
            if failures:
                break
        return failures | self.collect_losses()

    def dry_run(self) -> None:
        """Compute a step whose results are discarded, as a memory plan does with fake tensors.

        Moments exist before it, as in every step but the first.
        """
        if self._optimizer is None:
            (slot,) = self.slots
            for parameter in slot.parameters:
                parameter.grad = torch.zeros_like(parameter)
            slot.optimizer.step()
            self._step_alone()
        else:
            self._step(self._optimizer, {name: table[0] for name, table in self._tables(1).items()})
        self._unread.clear()

    def _tables(self, steps: int) -> dict[str, Tensor]:
        """Return the learning rates and dropout keys of the next steps on the device, one row per step."""
        rates = [[slot.learning_rates(ahead) for slot in self.slots] for ahead in range(steps)]
        keys = [self._keys(ahead) for ahead in range(steps)]
        tables = {_RATES: np.array(rates, dtype=np.float64), _KEYS: np.stack(keys)}
        return {name: on_device(table, self._frozen.device.device) for name, table in tables.items()}

    def write_back(self, slot: TrialSlot) -> None:
        """Copy a slot's parameters and moments from the stacks."""
        if self._optimizer is None:
            return
        place = self.slots.index(slot)
        for stack, index in self._stacks_of(place):
            stack.write_back(index)
            for own, stacked, part in stack.parts(index):
                if slot.step:
                    first, second = self._optimizer.moments(stacked)
                    slot.set_moments(own, part(first), part(second))

    def close(self) -> None:
        """Update every slot, and release the stacks."""
        for slot in self.slots:
            self.write_back(slot)
            slot.own_memory()

    def forget(self) -> None:
        """Release the slots of a lane that is kept to be refilled."""
        self.slots = []

    def _step_alone(self) -> Failures:
        (slot,) = self.slots
        keys = on_device(self._keys(), self._frozen.device.device)
        value = 0.0
        with slot.training():
            for start, batch in self._parts():
                with self._dropping(keys, start):
                    (loss,) = self._objective.losses(self.together, batch)
                    value += slot.learn(loss, is_first=start == 0)
            reason = slot.update(value)
        return {} if reason is None else {slot: reason}

    def _step(self, optimizer: PackAdamW, row: Mapping[str, Tensor]) -> None:
        """Compute one step of all slots, without waiting for the device."""
        parts = self._parts()
        ((_, batch), *others) = parts
        if others or self._graphs is None or not batch.has_fixed_shapes:
            done = self._computed(row, parts, optimizer)
        else:
            done = dict(self._graphs.run({**batch.tensors, **row}))
        self._unread.append((done["losses"], done["norms"]))
        for slot in self.slots:
            slot.step += 1

    def _computed(self, row: Mapping[str, Tensor], parts: Parts, optimizer: PackAdamW) -> dict[str, Tensor]:
        """Compute a step; return losses and gradient norms ``(K,)``.

        Args:
            row: Rates and dropout keys of the slots.
            parts: Parts of the batch.
            optimizer: Optimizer of the lane.
        """
        optimizer.zero_grad()
        found: list[Tensor] = []
        for start, batch in parts:
            with self._dropping(row[_KEYS], start):
                losses = self._objective.losses(self.together, batch)
                losses.sum().backward()  # type: ignore[no-untyped-call]
            found.append(losses.detach())
        held = found[0] if len(found) == 1 else torch.stack(found).sum(dim=0)
        return {"losses": held, "norms": optimizer.update(row[_RATES], held)}

    def _parts(self) -> Parts:
        """Return the batch of the next step, in the parts in which it is computed."""
        own = [slot.order.examples(slot.step) for slot in self.slots]
        starts = self._frozen.micro_batch.starts(len(own[0]))
        parts = []
        for start in starts:
            indices = np.concatenate([one[start : start + starts.step] for one in own])
            parts.append((start, self._objective.batch("train", indices)))
        units = [batch.units for _, batch in parts if batch.units is not None]
        if len(starts) == 1:
            return parts
        if len(units) < len(starts):
            return [(0, self._objective.batch("train", np.concatenate(own)))]
        sums = np.sum([one.reshape(len(own), -1).sum(axis=1) for one in units], axis=0)
        device = self._frozen.device
        totals = on_device(sums, device.device).to(device.dtype)
        return [(start, replace(batch, totals=totals)) for start, batch in parts]

    def collect_losses(self) -> Failures:
        """Collect the losses of the steps since the last call; a slot fails at the first non-finite loss or norm."""
        if not self._unread:
            return {}
        losses, norms = (torch.stack(some).double().cpu().numpy() for some in zip(*self._unread, strict=True))
        self._unread.clear()
        failures: Failures = {}
        for place, slot in enumerate(self.slots):
            began_at = slot.step - len(losses)
            for done, (loss, norm) in enumerate(zip(losses[:, place], norms[:, place], strict=True)):
                if math.isfinite(loss) and math.isfinite(norm):
                    slot.count_loss(float(loss))
                    continue
                what = f"gradient norm is {norm}" if math.isfinite(loss) else f"training loss is {loss}"
                slot.step = began_at + done
                failures[slot] = f"the {what} at step {slot.step + 1}"
                break
        return failures

    def _keys(self, ahead: int = 0) -> NDArray[np.int64]:
        """Return the dropout key of each slot some steps ahead, ``(K,)``."""
        return np.array([derived_seed(slot.request.seed, "dropout", slot.step + ahead) for slot in self.slots])

    @contextmanager
    def _dropping(self, keys: Tensor, examples_before: int = 0) -> Iterator[None]:
        """Enable training mode with each slot's own dropout within the context, if the backbone or the plan has any.

        Args:
            keys: Keys of the slots, ``(K,)``.
            examples_before: Number of examples of each slot's batch in earlier parts.
        """
        of_low_rank = self.slots[0].request.plan.lora_dropout if self.slots else 0.0
        if not self._has_dropout and not of_low_rank:
            yield
            return
        if self._has_dropout:
            self._frozen.model.train()
        try:
            with dropping(SlotDropout(keys, of_low_rank=of_low_rank, examples_before=examples_before)):
                yield
        finally:
            self._frozen.model.eval()

    def _new_graphs(self, optimizer: PackAdamW, recorder: Recorder) -> StepGraphs | None:
        """Return the recordings of the step; None unless batches have few shapes."""
        empty = self._objective.batch("train", np.zeros(0, dtype=np.int64))
        if not empty.has_fixed_shapes:
            return None
        own = (_RATES, _KEYS)

        def step(inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            tensors = {name: tensor for name, tensor in inputs.items() if name not in own}
            row = {name: inputs[name] for name in own}
            return self._computed(row, [(0, replace(empty, tensors=tensors))], optimizer)

        return StepGraphs(step, recorder)

    @property
    def _stacks(self) -> tuple[ModuleStack, ...]:
        return (*self.together.deltas.stacks, self.together.heads)

    def _owned(self) -> list[Owned]:
        return [
            Owned(parameter=parameter, places=stack.places, side=self._side(stack))
            for stack in self._stacks
            for parameter in stack.parameters.values()
        ]

    def _plans(self) -> list[tuple[Training, int]]:
        return [(slot.request.plan, slot.step) for slot in self.slots]

    def _side(self, stack: ModuleStack) -> int:
        if stack is self.together.heads:
            return _HEAD
        own = next(iter(stack.modules[0].parameters()))
        deltas = self.slots[stack.places[0]].deltas
        return 0 if any(own is parameter for parameter in deltas.attention.parameters()) else 1

    @torch.no_grad()
    def _load_moments(self, optimizer: PackAdamW) -> None:
        for place, slot in enumerate(self.slots):
            for stack, index in self._stacks_of(place):
                for own, stacked, part in stack.parts(index):
                    moments = slot.moments(own)
                    if moments is not None:
                        for held, value in zip(optimizer.moments(stacked), moments, strict=True):
                            part(held).copy_(value)

    def _stacks_of(self, place: int) -> Iterator[tuple[ModuleStack, int]]:
        for stack in self._stacks:
            if place in stack.places:
                yield stack, stack.places.index(place)
