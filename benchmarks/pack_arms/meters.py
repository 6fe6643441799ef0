"""What is read off a process: time and peak memory."""

import time
from pathlib import Path

import torch

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # see proc(5)


def now(device: str) -> float:
    """Seconds, when all that was asked of the device is done; on a CPU this process's, whatever else the cores do."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def reset_peak(device: str) -> None:
    """Forget the peak so far."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        _CLEAR.write_text(_RESET_PEAK)


def peak_bytes(device: str) -> int:
    """Most memory since `reset_peak`: of the allocator on a GPU, of the process on a CPU."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else status_bytes("VmHWM")


def held_bytes(device: str) -> int:
    """Memory now, as `peak_bytes` measures it."""
    return torch.cuda.memory_allocated() if device == "cuda" else status_bytes("VmRSS")


def status_bytes(name: str) -> int:
    """A line of ``/proc/self/status``."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
