"""Available memory, its reuse, and the recognition of its lack."""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path

import torch

OUT_OF_MEMORY = (RuntimeError, MemoryError)
"""Types of errors that are raised when memory runs out; see `is_out_of_memory`."""

_CPU_ALLOCATOR = "can't allocate memory"

_KEPT_BYTES = {-1: 1 << 28, -2: 1 << 26, -3: 1 << 25}
"""Settings of glibc's mallopt: free bytes kept at the top, bytes requested at once, and the size from which a block is
mapped by itself.
"""


def available_bytes(device: torch.device) -> int:
    """Return the free memory of the GPU, or of the machine, divided evenly among the workers of its cores."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(facts["MemAvailable"].split()[0]) * 1024
    return free * torch.get_num_threads() // max(1, len(os.sched_getaffinity(0)))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error is a lack of memory of the device or the machine."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or _CPU_ALLOCATOR in str(error)


def release_memory() -> None:
    """Return unused memory to the device and the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def keep_freed() -> None:
    """Keep freed memory of this process for its next allocations.

    Else a step on a CPU would return, and get zeroed again, the pages of its largest tensors. Has no effect on other C
    libraries than glibc.
    """
    with suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for setting, size in _KEPT_BYTES.items():
            mallopt(setting, size)
