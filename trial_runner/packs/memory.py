"""How much memory a pack takes, how many trials fit, and what is done when memory runs out."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trial_runner.attachment.frozen_model import FrozenModel
from trial_runner.objectives import Objective
from trial_runner.packs.lane import pass_of
from trial_runner.packs.slot import TrialSlot

OUT_OF_MEMORY = (RuntimeError, MemoryError)
"""What is raised when memory runs out; `is_out_of_memory` tells such an error from others of these kinds."""

_CPU_ALLOCATOR = "can't allocate memory"
_STATES = 4  # of every trained number: itself, its gradient and two moments
_MARGIN = 1.3  # over what a step keeps for its gradients: what backward holds beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryModel:
    """What a slot takes beside the backbone.

    Attributes:
        state_bytes: Deltas, head, gradients and optimiser of a slot.
        activation_bytes: What a training step of a slot keeps until its gradients are computed.
    """

    state_bytes: int
    activation_bytes: int

    @property
    def slot_bytes(self) -> float:
        """Both, and what backward holds beside."""
        return self.state_bytes + _MARGIN * self.activation_bytes

    def slots_within(self, free_bytes: int) -> int:
        """How many slots fit in memory that is free beside the backbone; at least 1."""
        return max(1, int(free_bytes / self.slot_bytes))


def measured_memory(frozen: FrozenModel, objective: Objective, slot: TrialSlot) -> MemoryModel:
    """What a trial takes, from one forward pass over the longest training examples.

    Args:
        slot: The trial; nothing of it changes.
    """
    longest = np.argsort(objective.lengths("train"), kind="stable")[-slot.request.plan.batch_size :]
    with saved_bytes([*frozen.model.parameters(), *slot.parameters]) as saved:
        objective.losses(pass_of(frozen, [slot]), objective.batch("train", longest))
    trained = sum(parameter.numel() * parameter.element_size() for parameter in slot.parameters)
    return MemoryModel(
        state_bytes=_STATES * trained,
        activation_bytes=sum(saved.values()),
    )


@contextmanager
def saved_bytes(known: list[Tensor]) -> Iterator[dict[int, int]]:
    """Bytes of every tensor that passes within the block keep for their gradients, by the place of its memory.

    Args:
        known: Tensors that are there anyway.
    """
    held = {tensor.untyped_storage().data_ptr() for tensor in known}
    saved: dict[int, int] = {}
    kept: list[Tensor] = []

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in held:
            saved[storage.data_ptr()] = storage.nbytes()
            kept.append(tensor)  # so that no two tensors are at one place one after the other
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield saved
    kept.clear()


def available_bytes(device: torch.device) -> int:
    """Memory that this process may take now: of the GPU, or of the machine, shared evenly among its cores' workers."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(facts["MemAvailable"].split()[0]) * 1024
    return free * torch.get_num_threads() // max(1, len(os.sched_getaffinity(0)))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device, or the machine, has no memory left."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or _CPU_ALLOCATOR in str(error)


def release_memory() -> None:
    """Give back what is held without need."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
