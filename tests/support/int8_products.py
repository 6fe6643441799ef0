"""Whether products of 8-bit numbers are exact: on a CPU without VNNI, or where oneDNN may not use it, they overflow."""

from functools import cache

import pytest
import torch


@cache
def are_exact() -> bool:
    """Return whether sums of the largest products are exact."""
    largest = torch.full((32, 32), 127, dtype=torch.int8)
    return bool((torch._int_mm(largest, largest) == 32 * 127**2).all())


def need_exact_int8(quantization: str | None) -> None:
    """Skip a test of int8 weights where their products overflow."""
    if quantization == "int8" and not are_exact():
        pytest.skip("products of 8-bit numbers overflow on this processor")
