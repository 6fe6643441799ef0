"""Passes in float64 throughout: norms that ask for float32 are computed in what they are given."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class in_double(TorchFunctionMode):  # noqa: N801 - read as a verb: with in_double()
    """Within the block no tensor of float64 is made one of float32."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """See `torch.overrides`."""
        kwargs = kwargs or {}
        first = args[0] if args else None
        if isinstance(first, Tensor) and first.dtype == torch.float64:
            asked = (*args[1:], *kwargs.values())
            if func is Tensor.float or (func is Tensor.to and torch.float32 in asked):
                return first
        return func(*args, **kwargs)
