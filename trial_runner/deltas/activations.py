"""The nonlinearities of bottlenecks."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from search_space.dimensions import Activation

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    Activation.RELU: functional.relu,
    Activation.GELU: functional.gelu,
    Activation.SILU: functional.silu,
    Activation.TANH: torch.tanh,
}
