"""An attention with a prefix, small enough for closed forms."""

import torch
from torch import Tensor

BATCH, HEADS, KV_HEADS, TOKENS, LENGTH, WIDTH = 2, 16, 4, 64, 30, 64
GROUP = HEADS // KV_HEADS


class AttentionProblem:
    """Queries, keys, values, a prefix, and a mask that is causal with padding on the right."""

    def __init__(self, dtype: torch.dtype, *, query_scale: float = 1.0, length: int = LENGTH) -> None:
        generator = torch.Generator().manual_seed(0)

        def draw(*shape: int, scale: float = 1.0) -> Tensor:
            numbers = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale
            return numbers.to(dtype).requires_grad_()

        self.dtype = dtype
        self.q = draw(BATCH, HEADS, TOKENS, WIDTH, scale=query_scale)
        self.k, self.v = draw(BATCH, KV_HEADS, TOKENS, WIDTH), draw(BATCH, KV_HEADS, TOKENS, WIDTH)
        self.p_k, self.p_v = draw(KV_HEADS, length, WIDTH), draw(KV_HEADS, length, WIDTH)
        causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
        real = torch.arange(TOKENS) < torch.tensor([[TOKENS], [TOKENS - 11]])
        self.mask = (causal & real[:, None, :])[:, None]  # (B, 1, T, S)

    @property
    def repeated(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Keys and values, and those of the prefix, once for every query head."""
        own = (part.repeat_interleave(GROUP, 1) for part in (self.k, self.v))
        k, v, p_k, p_v = *own, *(part.repeat_interleave(GROUP, 0) for part in (self.p_k, self.p_v))
        return k, v, p_k, p_v
