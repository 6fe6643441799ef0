"""Bound on the difference of two computations of the same numbers, from their sizes."""

import math

import torch
from torch import Tensor


def rounding(values: Tensor, *, terms: int, dtype: torch.dtype = torch.float32) -> float:
    """Return ``8 eps sqrt(terms) max|values|``: errors of the terms of a sum add up as the steps of a random walk.

    Args:
        values: What is compared.
        terms: Numbers that one of them is summed from, of all the products one after the other.
        dtype: What they are computed in.
    """
    return 8 * torch.finfo(dtype).eps * math.sqrt(terms) * float(values.detach().abs().max())
