"""Choice between CPU and GPU kernels; tensors on the meta device can stand for a GPU's."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_planned: ContextVar[bool] = ContextVar("planned_for_gpu", default=False)


def has_gpu_kernels(tensor: Tensor) -> bool:
    """Return whether a tensor's operations run GPU kernels, or are planned to."""
    return tensor.is_cuda or _planned.get()


@contextmanager
def as_on_gpu() -> Iterator[None]:
    """Choose GPU kernels inside the context, on any device."""
    before = _planned.set(True)
    try:
        yield
    finally:
        _planned.reset(before)
