"""Peak memory of PyTorch's allocator."""

import gc
import itertools
from collections.abc import Callable
from typing import Any

import torch


def peak_of(work: Callable[[], object]) -> int:
    """Return the peak of the bytes that a call allocates beyond those before."""
    gc.collect()  # what tests before left in cycles would be given back meanwhile
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    results: Any = profile.profiler
    events = [one for one in results.kineto_results.events() if one.name() == "[memory]"]
    return max(itertools.accumulate(one.nbytes() for one in sorted(events, key=lambda one: one.start_ns())))
