"""Blocks of a backbone of which every rank holds a part (PyTorch's ``fully_shard``), gathered when a rank computes.

Gathering takes all ranks, and each trains its own trials, with other structures, lengths and numbers of passes. So
they agree before every pass over a stack. A rank without such a pass gathers the blocks with the others and drops them;
no rank computes for another. Nothing is reduced, since nothing that is shared is trained.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from trial_runner.errors import BackboneError
from trial_runner.packed.stacks import tensors_in

_NOTHING = 0
Walk = int
"""Pass over the blocks of a stack, forward or backward, by its number; `_NOTHING` for none. Of two requested walks the
one of the higher number comes first: it is earlier in a step, so that late ranks catch up.
"""


class ShardedBlocks:
    """This rank's part of every block; whole blocks are gathered for the passes of its pack.

    Between passes a rank holds its parts alone; within one, the block that is computed.

    Args:
        stacks: Blocks of each stack, from the input to the output.
        mesh: Ranks, along one axis.

    Raises:
        BackboneError: If a block stands in two places, or PyTorch cannot shard it.
    """

    def __init__(self, stacks: Sequence[Sequence[nn.Module]], mesh: DeviceMesh) -> None:
        """Release the parts that the other ranks hold."""
        self._paths = _paths(stacks)
        self._walk: Walk = _NOTHING
        self._gathered = 0
        self._computed: set[nn.Module] = set()
        every = [block for stack in stacks for block in stack]
        if len({id(block) for block in every}) < len(every):
            raise BackboneError(
                "a backbone whose blocks share their weights cannot be sharded; take fleet.worker.shards: 1."
            )
        for forth, back in zip(self._forth, self._back, strict=True):
            path = self._paths[forth]
            for place, block in enumerate(path):
                # before fully_shard, so that its hooks on gradients of what a block returns come after ours
                block.register_forward_hook(partial(self._after, back, len(path) - 1 - place))
                _share_out(block, mesh)
                block.register_forward_pre_hook(partial(self._before, forth, place), prepend=True)

    @property
    def _forth(self) -> range:
        return range(len(self._paths), len(self._paths) // 2, -1)

    @property
    def _back(self) -> range:
        return range(1, len(self._paths) // 2 + 1)

    @property
    def held_bytes(self) -> int:
        """Bytes of this rank's parts of all blocks between passes."""
        parts = [one for forth in self._forth for block in self._paths[forth] for one in block.parameters()]
        return sum(one.to_local().nbytes for one in parts if isinstance(one, DTensor))

    def attend(self) -> None:
        """Take part in gathering until no rank needs another pass.

        Every rank calls it after each request to all ranks.
        """
        self._finish()
        while (walk := self._agreed(_NOTHING)) != _NOTHING:
            self._go(walk)

    def _before(self, walk: Walk, place: int, block: nn.Module, given: object) -> None:
        """Gather a block before its forward pass."""
        self._need(walk, place)

    def _after(self, walk: Walk, place: int, block: nn.Module, given: object, returned: object) -> None:
        """Register that the block is gathered again before gradients pass through it."""
        learned = [one for one in tensors_in(returned) if one.requires_grad]
        if torch.is_grad_enabled() and learned:
            register_multi_grad_hook(learned, lambda _: self._need(walk, place), mode="any")

    def _need(self, walk: Walk, place: int) -> None:
        """Gather the block at a place of a walk; earlier blocks that are not needed here are skipped."""
        if walk != self._walk or place < self._gathered:
            self._begin(walk)
        self._pass_by(place)
        block = self._paths[walk][place]
        _gather(block)
        self._computed.add(block)
        self._gathered += 1

    def _begin(self, walk: Walk) -> None:
        """Wait until the other ranks are ready for a walk, and take part in theirs before it."""
        self._finish()
        if walk in self._forth:
            for block in self._paths[walk]:
                if block in self._computed:
                    block.reset_iter_state()  # what a pass that ran out of memory has left
        while (agreed := self._agreed(walk)) != walk:
            self._go(agreed)
        self._walk, self._gathered = walk, 0

    def _finish(self) -> None:
        """Complete a walk that this rank's pass has left early, as every pass without gradients below does."""
        if self._walk != _NOTHING:
            self._pass_by(len(self._paths[self._walk]))
            self._walk = _NOTHING

    def _go(self, walk: Walk) -> None:
        self._walk, self._gathered = walk, 0
        self._finish()

    def _pass_by(self, place: int) -> None:
        """Gather all blocks up to a place for the other ranks."""
        for block in islice(self._paths[self._walk], self._gathered, place):
            _gather(block)
            block.reshard()
        self._gathered = max(self._gathered, place)

    def _agreed(self, wanted: Walk) -> Walk:
        """Return the next walk by agreement of all ranks."""
        found = torch.tensor(wanted)
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return int(found)


def _paths(stacks: Sequence[Sequence[nn.Module]]) -> Mapping[Walk, Sequence[Any]]:
    """Return the blocks of every walk in its order: forward through the stacks, then backward."""
    count = len(stacks)
    forth = {2 * count - index: tuple(stack) for index, stack in enumerate(stacks)}
    back = {index + 1: tuple(reversed(stack)) for index, stack in enumerate(stacks)}
    return {**back, **forth}


def _gather(block: Any) -> None:
    block.reshard()  # one that is whole has nothing to gather, and the others would wait
    block.unshard()


def _share_out(block: nn.Module, mesh: DeviceMesh) -> FSDPModule:
    try:
        shared: FSDPModule = fully_shard(block, mesh=mesh, reshard_after_forward=True)
    except ValueError as error:
        raise BackboneError(f"blocks must be such that PyTorch can shard them; {error}") from error
    return shared
