"""Memory that a process keeps."""

import platform
import resource

import pytest
import torch

from trial_runner.packs.out_of_memory import keep_freed

PAGE_BYTES = 4096
ROUNDS, TENSORS, BYTES = 8, 10, 4 << 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries decide for themselves")
def test_freed_memory_of_a_step_is_reused():
    keep_freed()
    faults = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        held = [torch.ones(BYTES, dtype=torch.uint8) for _ in range(TENSORS)]
        del held
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert min(faults[1:]) < TENSORS * BYTES // PAGE_BYTES // 4, faults
