"""What is read off a process: time, peak memory, floating-point operations, launches."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # see proc(5)
_LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch")


def now(device: str) -> float:
    """Seconds, when all that was asked of the device is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def reset_peak(device: str) -> None:
    """Forget the peak so far."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        _CLEAR.write_text(_RESET_PEAK)


def peak_bytes(device: str) -> int:
    """Most memory since `reset_peak`: of the allocator on a GPU, of the process on a CPU."""
    return torch.cuda.max_memory_allocated() if device == "cuda" else _status_bytes("VmHWM")


def held_bytes(device: str) -> int:
    """Memory now, as `peak_bytes` measures it."""
    return torch.cuda.memory_allocated() if device == "cuda" else _status_bytes("VmRSS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Of one step.

    Attributes:
        flops: Floating-point operations.
        launches: Kernels on a GPU; on a CPU, operations that compute or copy.
    """

    flops: float
    launches: float


class _Operations(TorchDispatchMode):
    """Counts ATen operations that are no views."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def counts_of(step: Callable[[], object], device: str, *, steps: int = 3) -> Counts:
    """Counts of a step, means of ``steps`` steps; it is called twice as often."""
    with FlopCounterMode(display=False) as flops:
        for _ in range(steps):
            step()
    launches = _cuda_launches(step, steps) if device == "cuda" else _operations(step, steps)
    return Counts(flops=flops.get_total_flops() / steps, launches=launches / steps)


def _operations(step: Callable[[], object], steps: int) -> int:
    with _Operations() as operations:
        for _ in range(steps):
            step()
    return operations.count


def _cuda_launches(step: Callable[[], object], steps: int) -> int:
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
    return sum(event.count for event in profile.key_averages() if event.key in _LAUNCHES)


def _status_bytes(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])
