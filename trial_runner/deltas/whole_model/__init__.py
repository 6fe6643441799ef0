"""Changes of a whole model: theta = theta_0 + Delta for every parameter tensor, without a copy of theta_0.

`build_whole` makes the trainable module of a form; `swapped` puts its weights in place of the frozen ones.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from search_space.forms import Full, GlobalForm, Intrinsic, Sparse
from trial_runner.deltas.whole_model.flat import FrozenWeights
from trial_runner.deltas.whole_model.full import FullDelta
from trial_runner.deltas.whole_model.intrinsic import IntrinsicDelta
from trial_runner.deltas.whole_model.sparse import GATE_RATE_FACTOR, SparseDelta
from trial_runner.deltas.whole_model.swap import swapped

__all__ = [
    "GATE_RATE_FACTOR",
    "FullDelta",
    "IntrinsicDelta",
    "SparseDelta",
    "WholeModelDelta",
    "build_whole",
    "swapped",
]

WholeModelDelta = FullDelta | SparseDelta | IntrinsicDelta


def build_whole(form: GlobalForm, frozen: Mapping[str, Tensor], generator: torch.Generator) -> WholeModelDelta:
    """The trainable module of a form of the whole model.

    Args:
        form: The form.
        frozen: Parameters of the frozen base model by name, tied ones once; referred to, not copied.
        generator: Draws what is random, on the CPU.
    """
    weights = FrozenWeights(frozen)
    match form:
        case Full():
            return FullDelta(weights)
        case Sparse():
            return SparseDelta(form, weights)
        case Intrinsic():
            return IntrinsicDelta(form, weights, generator)
