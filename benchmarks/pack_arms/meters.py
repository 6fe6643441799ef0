"""Time and peak memory of a process."""

import time
from pathlib import Path

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # see proc(5)


def now(device: str) -> float:
    """Return seconds after the device is synchronized; on a CPU the processor time of this process."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def reset_peak(device: str) -> None:
    """Reset the peak of memory."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        _CLEAR.write_text(_RESET_PEAK)


def peak_bytes(device: str) -> int:
    """Return the peak of memory since `reset_peak`: of the allocator on a GPU, of the process on a CPU."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else status_bytes("VmHWM")


def held_bytes(device: str) -> int:
    """Return the memory now, measured like `peak_bytes`."""
    return torch.cuda.memory_allocated() if device == "cuda" else status_bytes("VmRSS")


def status_bytes(name: str) -> int:
    """Return an entry of ``/proc/self/status`` in bytes."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
