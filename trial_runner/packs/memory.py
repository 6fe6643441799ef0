"""Memory of a pack, planned before training by running its own steps on fake tensors.

Nothing is computed or tried out. Every operation returns a fake tensor (of PyTorch), and the sizes of tensors that are
alive at a time are added up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any
from weakref import ref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from search_space.dimensions import StackKind
from trial_runner.attachment.frozen_model import FrozenModel
from trial_runner.deltas.whole_model.swap import replaced
from trial_runner.objectives import Objective
from trial_runner.packed.kernels import as_on_gpu
from trial_runner.packed.stacks import tensors_in
from trial_runner.packs.graphs import Recorder
from trial_runner.packs.lane import Lane
from trial_runner.packs.order import ExampleOrder
from trial_runner.packs.slot import TrialSlot

DEEP, FEW = 8, (2, 4)  # blocks; of more than so many, so few are planned, of kinds that take turns both kinds
_GPU_BLOCK = 512  # what PyTorch's allocator rounds up to
_FIGURES = ("held_bytes", "step_bytes", "evaluation_bytes")
_GROUPED_PRODUCT = "aten::_grouped_mm"  # of rows with several experts, each row with one
_MARGIN = 1.05  # for what kernels take by themselves
_MOST_HALVINGS = 16  # beyond them an evaluation is one example of a slot

USABLE = 0.8
"""Share of the free memory that a pack is fitted to; the rest is lost to fragmentation. A pack that is still too large
is made smaller when memory runs out.
"""

MOST_ON_GPU = 32
"""Largest number of trials in a pass; more gain nothing: the products are large enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """Memory of slots that are computed together, besides the backbone.

    Attributes:
        held_bytes: Bytes between steps: deltas, heads, gradients, moments and the trials' own copies.
        step_bytes: Largest additional bytes of a training step.
        evaluation_bytes: Largest additional bytes of an evaluation, generation included.
        is_recorded: Whether steps are recorded; recordings share memory among each other, and with nothing else.
        evaluated: Number of examples of each slot in a pass of an evaluation.
    """

    held_bytes: int
    step_bytes: int
    evaluation_bytes: int
    is_recorded: bool = False
    evaluated: int = 1

    def followed_by(self, other: "MemoryPlan") -> "MemoryPlan":
        """Return the plan of both, computed one after the other."""
        return MemoryPlan(
            held_bytes=self.held_bytes + other.held_bytes,
            step_bytes=max(self.step_bytes, other.step_bytes),
            evaluation_bytes=max(self.evaluation_bytes, other.evaluation_bytes),
            is_recorded=self.is_recorded,
            evaluated=min(self.evaluated, other.evaluated),
        )

    def towards(self, other: "MemoryPlan", times: float) -> "MemoryPlan":
        """Extrapolate linearly from this plan through another one: a model of more blocks, from two of few."""
        both = {name: (getattr(self, name), getattr(other, name)) for name in _FIGURES}
        figures: Any = {name: int(here + times * (there - here)) for name, (here, there) in both.items()}
        return replace(self, **figures)

    @property
    def of_training(self) -> "MemoryPlan":
        """The same without any evaluation, which can be made smaller."""
        return replace(self, evaluation_bytes=0)

    @property
    def peak_bytes(self) -> int:
        """Largest number of bytes in use at a time."""
        return self.held_bytes + int(_MARGIN * max(self.step_bytes, self.evaluation_bytes))

    @property
    def slot_bytes(self) -> int:
        """Bytes that must be free for it: recorded and eager steps have memory of their own."""
        recorded = int(_MARGIN * self.step_bytes) if self.is_recorded else 0
        return self.peak_bytes + recorded


def fit(free_bytes: int, wanted: int, one: MemoryPlan, two: MemoryPlan) -> tuple[int, int]:
    """Return the number of trials that fit, at least 1, and the number of halvings of evaluations, which shrink first.

    Args:
        free_bytes: Bytes of memory that are free beside the backbone.
        wanted: Largest number of trials.
        one: Plan of one slot.
        two: Plan of two; each further one takes as much as the second.
    """

    def that_fit() -> int:
        each = max(1, two.slot_bytes - one.slot_bytes)
        return min(wanted, 1 + max(0, (free_bytes - one.slot_bytes) // each))

    halvings = 0
    while (slots := that_fit()) < wanted or one.slot_bytes > free_bytes:
        if two.evaluation_bytes <= two.step_bytes or halvings == _MOST_HALVINGS:
            break
        halvings += 1
        one, two = (replace(plan, evaluation_bytes=plan.evaluation_bytes // 2) for plan in (one, two))
    return slots, halvings


def deep_blocks(frozen: FrozenModel) -> nn.ModuleList | None:
    """Return the blocks of a deep decoder, whose first ones represent all; None for any other model."""
    paths = list(frozen.family.ports(frozen.shape).layers.values())
    if frozen.shape.kind is not StackKind.DECODER or len(paths) != 1 or not paths[0].endswith(".{layer}"):
        return None
    blocks = frozen.model.get_submodule(paths[0].removesuffix(".{layer}"))
    if not isinstance(blocks, nn.ModuleList) or len(blocks) <= DEEP:
        return None
    return blocks if getattr(frozen.model.config, "num_hidden_layers", None) == len(blocks) else None


@contextmanager
def only_first(blocks: nn.ModuleList, config: Any, count: int) -> Iterator[None]:
    """Reduce a model to its first blocks within the context."""
    others, kinds = list(blocks)[count:], getattr(config, "layer_types", None)
    del blocks[count:]
    config.num_hidden_layers = len(blocks)
    if kinds is not None:
        config.layer_types = kinds[:count]
    try:
        yield
    finally:
        config.num_hidden_layers = len(blocks.extend(others))
        if kinds is not None:
            config.layer_types = kinds


def planned_memory(
    frozen: FrozenModel, objective: Objective, slots: Sequence[TrialSlot], *, is_recorded: bool
) -> MemoryPlan:
    """Plan the memory of trials that are computed in one pass, on the longest examples.

    Args:
        frozen: Frozen backbone.
        objective: Objective of the task.
        slots: Slots of the trials; unusable afterwards.
        is_recorded: Whether the device records steps.
    """
    learned = objective.lengths("train")
    examples = slots[0].request.plan.examples_of(int(learned.max(initial=1)))
    starts = frozen.micro_batch.starts(examples)
    two = min(examples, 2 * starts.step)  # further parts take no more memory than the second
    order = LongestExamples(learned, two)
    lengths = objective.lengths("validation")
    with _counting(frozen, objective) as counted:
        mine = [_without_memory(slot, order, counted) for slot in slots]
        lane = Lane(mine, frozen, objective, Recorder(is_on=False) if is_recorded else None)
        counted.begin_anew()
        lane.dry_run()
        held = counted.held_bytes
        step = counted.peak_bytes - held
        counted.begin_anew()
        rows = min(len(lengths), frozen.evaluated_together(len(slots), int(lengths.max(initial=1))))
        longest = LongestExamples(lengths, rows).examples(0)
        with torch.no_grad():
            objective.losses(lane.together, objective.batch("validation", np.tile(longest, len(slots))))
            objective.dry_run(lane.together, "validation")
        evaluation = counted.peak_bytes - held
    return MemoryPlan(
        held_bytes=held,
        step_bytes=step,
        evaluation_bytes=evaluation,
        is_recorded=is_recorded,
        evaluated=rows,
    )


def _without_memory(slot: TrialSlot, order: ExampleOrder, counted: "_Counted") -> TrialSlot:
    """Return a trial whose tensors are fake."""
    for module in (slot.deltas, slot.head):
        for part in module.modules():
            for name, one in _tensors_of(part):
                setattr(part, name, counted.without_memory(one))
    return TrialSlot(request=slot.request, deltas=slot.deltas, head=slot.head, order=order)


class LongestExamples(ExampleOrder):
    """Order with the longest examples and the shortest one at every step, so that rows are padded."""

    def __init__(self, lengths: NDArray[Any], batch_size: int) -> None:
        """Choose the examples of every step by their numbers of tokens."""
        by_length = np.argsort(lengths, kind="stable").astype(np.int64)
        self._chosen = np.resize(np.concatenate([by_length[:1], by_length[::-1]]), batch_size)

    def examples(self, step: int) -> NDArray[np.int64]:
        """Return the same examples at every step."""
        return self._chosen

    def sizes_from(self, step: int) -> tuple[int, ...]:
        """Return the batch size, the same at every step."""
        return (len(self._chosen),)


class _Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sum of the memory that fake tensors would have while they are alive."""

    def __init__(self, fake: FakeTensorMode, block: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held_bytes = self.peak_bytes = 0
        self._fake = fake
        self._block = block
        self._alive: dict[int, ref[Any]] = {}

    def begin_anew(self) -> None:
        """Reset the peak."""
        self.peak_bytes = self.held_bytes

    def without_memory(self, tensor: Tensor, *, counts: bool = True) -> Tensor:
        """Return a fake tensor like another, counted or not."""
        made = self._fake.from_tensor(tensor)
        self._note(made, counts=counts)
        return made

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.prim.device.default:  # most calls: fake tensors ask for it all the time
            return args[0].fake_device
        if torch.Tag.data_dependent_output in func.tags:  # Tensor.item
            # a loss is finite; a mask hides something
            return False if args[0].dtype == torch.bool else 1.0
        # PyTorch's fake product works for bf16 alone, and not for weights that are one expanded number
        results = args[0] @ args[1][0] if func.name() == _GROUPED_PRODUCT else func(*args, **(kwargs or {}))
        for one in tensors_in(results):
            self._note(one)
        return results

    def _note(self, tensor: Tensor, *, counts: bool = True) -> None:
        storage = tensor.untyped_storage()
        if id(storage) in self._alive:
            return
        size = -(-storage.nbytes() // self._block) * self._block if counts else 0
        self._alive[id(storage)] = ref(storage, partial(self._end, id(storage), size))
        self.held_bytes += size
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)

    def _end(self, key: int, size: int, _: Any) -> None:
        del self._alive[key]
        self.held_bytes -= size


def _tensors_of(module: nn.Module) -> list[tuple[str, Tensor]]:
    """Return the tensors that a module holds itself, with their names."""
    given: Any = {"recurse": False, "remove_duplicate": False}
    return [*module.named_parameters(**given), *module.named_buffers(**given)]


@contextmanager
def _counting(frozen: FrozenModel, objective: Objective) -> Iterator[_Counted]:
    """Compute with fake tensors within the context; the backbone and its head are fake too, and not counted."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    counted = _Counted(fake, _GPU_BLOCK if frozen.device.is_gpu else 1)
    modules = chain.from_iterable(one.modules() for one in (frozen.model, *objective.frozen_modules))
    tensors = [(module, name, one) for module in modules for name, one in _tensors_of(module)]
    as_there = as_on_gpu() if frozen.device.stands_for_gpu else nullcontext()
    locations = ((module, name) for module, name, _ in tensors)
    fakes = (counted.without_memory(one, counts=False) for _, _, one in tensors)
    with replaced(locations, fakes), fake, counted, as_there:
        yield counted
