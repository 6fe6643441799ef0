"""What a pass computes and moves, operation by operation, and how long a GPU takes for it: a roofline of each.

An operation takes the longest of three: its products at the peak of the device's units, its tensors at the bandwidth of
its memory, and one launch (Williams et al. 2009). Peaks and bandwidths are those of the data sheets, products without
sparsity; what is reached of them are the shares below.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_OF_PEAK, _OF_BANDWIDTH = 0.6, 0.8
"""What large products and copies reach."""

Cost = tuple[float, float, bool]
"""Floating-point operations of the products, bytes read and written, whether the products are of 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """What a kind of GPU can do.

    Attributes:
        name: As its maker writes it.
        memory_bytes: All of it.
        half_flops: Products of 16 bits a second.
        single_flops: Products of 32 bits a second.
        bandwidth: Bytes a second.
        launch_seconds: Of an operation that the processor launches.
    """

    name: str
    memory_bytes: int
    half_flops: float
    single_flops: float
    bandwidth: float
    launch_seconds: float = 6e-6


GPUS = (
    Gpu(name="RTX 4090", memory_bytes=24 * 10**9, half_flops=165e12, single_flops=83e12, bandwidth=1.01e12),
    Gpu(name="A100 40GB", memory_bytes=40 * 10**9, half_flops=312e12, single_flops=19.5e12, bandwidth=1.56e12),
    Gpu(name="H100 80GB", memory_bytes=80 * 10**9, half_flops=989e12, single_flops=67e12, bandwidth=3.35e12),
    Gpu(name="H200 141GB", memory_bytes=141 * 10**9, half_flops=989e12, single_flops=67e12, bandwidth=4.8e12),
)
"""One of each size, from the smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Operations of a pass.

    Attributes:
        operations: How many there are of each cost.
        passes: Over so many passes.
    """

    operations: Mapping[Cost, float] = field(default_factory=dict)
    passes: int = 1

    @property
    def count(self) -> float:
        """Operations of one pass."""
        return sum(self.operations.values()) / self.passes

    @property
    def flops(self) -> float:
        """Of the products of one pass."""
        return sum(cost[0] * times for cost, times in self.operations.items()) / self.passes

    def after(self, other: "Work") -> "Work":
        """Both, one after the other."""
        return Work(operations=_summed(self.operations, other.operations), passes=self.passes)

    def towards(self, other: "Work", times: float) -> "Work":
        """So many times as far as another one, operation by operation: a model of more blocks, from two of few."""
        costs = {**self.operations, **other.operations}
        here, there = self.operations, other.operations
        return Work(
            operations={cost: here.get(cost, 0) + times * (there.get(cost, 0) - here.get(cost, 0)) for cost in costs},
            passes=self.passes,
        )

    def repeated(self, times: float) -> "Work":
        """The same so many times over in each pass."""
        if times == 1:
            return self
        return Work(operations={cost: times * count for cost, count in self.operations.items()}, passes=self.passes)

    def seconds(self, gpu: Gpu) -> float:
        """Of one pass."""
        total = 0.0
        for (flops, moved, is_half), times in self.operations.items():
            peak = gpu.half_flops if is_half else gpu.single_flops
            longest = max(flops / (_OF_PEAK * peak), moved / (_OF_BANDWIDTH * gpu.bandwidth), gpu.launch_seconds)
            total += times * longest
        return total / self.passes


def _summed(one: Mapping[Cost, float], other: Mapping[Cost, float]) -> dict[Cost, float]:
    return {cost: one.get(cost, 0) + other.get(cost, 0) for cost in {**one, **other}}
