"""Changes of a whole model: theta = theta_0 + Delta for every parameter tensor, without a copy of theta_0.

`swapped` puts the weights of a module in place of the frozen ones.
"""

from trial_runner.deltas.whole_model.intrinsic import IntrinsicDelta
from trial_runner.deltas.whole_model.sparse import GATE_RATE_FACTOR, SparseDelta
from trial_runner.deltas.whole_model.swap import swapped, tied, ties_of
from trial_runner.deltas.whole_model.whole_delta import FrozenWeights, FullDelta, WholeModelDelta

__all__ = [
    "GATE_RATE_FACTOR",
    "FrozenWeights",
    "FullDelta",
    "IntrinsicDelta",
    "SparseDelta",
    "WholeModelDelta",
    "swapped",
    "tied",
    "ties_of",
]
