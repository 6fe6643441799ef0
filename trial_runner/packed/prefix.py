"""What the prefixes of several slots put before the keys of one attention module."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prefix:
    """What stands before the keys and values of an attention module, for each of K equal blocks of rows.

    Attributes:
        keys: ``(K, N_kv, R, d_h)``.
        values: Of the same shape.
        visible: Which rows a block has, ``(K, R)``; None for all.
        share: What keys and values are multiplied with for each sample, ``(K B, 1, 1, 1)``; None for nothing.
    """

    keys: Tensor
    values: Tensor
    visible: Tensor | None
    share: Tensor | None = None
