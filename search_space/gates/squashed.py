"""Gates that squash what is added, by one trained number or by one per token."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.gates.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class TanhGate(Gate):
    """``h <- h + tanh(g) Delta`` with one trained g per sublayer, which starts at 0.

    After the zero-initialised gate of LLaMA-Adapter (Zhang et al. 2024).
    """

    name: ClassVar[str] = "tanh"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmoidGate(Gate):
    """``h <- h + sigmoid(z w + b) Delta``, per token and head, z what the edit reads; w and b start at zero.

    The per-token form of UniPELT's gates (Mao et al. 2022), which average over a sample and so see the future.
    """

    name: ClassVar[str] = "sigmoid"
