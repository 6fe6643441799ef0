"""Memory that there is, what is kept of it, and what is done when it runs out."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

import torch

OUT_OF_MEMORY = (RuntimeError, MemoryError)
"""What is raised when memory runs out; `is_out_of_memory` tells such an error from others of these kinds."""

_CPU_ALLOCATOR = "can't allocate memory"

_KEPT_BYTES = {-1: 1 << 28, -2: 1 << 26, -3: 1 << 25}
"""Of glibc's mallopt: free memory at the top that is kept, what is asked for at once, and from where on a block is one
of the system's own."""


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


def keep_freed() -> None:
    """Keep memory that this process frees for what it asks for next.

    Else a step on a CPU has the system take back, and clear again, the pages of its largest tensors. Other C libraries
    than glibc decide for themselves.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for setting, size in _KEPT_BYTES.items():
            mallopt(setting, size)
