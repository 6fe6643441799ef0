"""Whose kernels compute: a GPU's on a GPU, and wherever one is planned for with tensors without memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_planned: ContextVar[bool] = ContextVar("planned_for_gpu", default=False)


def has_gpu_kernels(tensor: Tensor) -> bool:
    """Whether what a tensor is computed with is what a GPU would take."""
    return tensor.is_cuda or _planned.get()


@contextmanager
def as_on_gpu() -> Iterator[None]:
    """Choose as a GPU would, within the block, whatever the tensors are on."""
    before = _planned.set(True)
    try:
        yield
    finally:
        _planned.reset(before)
