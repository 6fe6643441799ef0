"""Gates: how an edit's output joins the tensor it writes. A new gate is a class here and a word in `GATES`."""

from collections.abc import Mapping

from search_space.gates.gate import Gate
from search_space.gates.log_sum_exp import ConvexGate, ConvexInducerGate, InducerGate, WeightedGate
from search_space.gates.plain import Add, Multiply, Prepend
from search_space.gates.sample import ConvexSampleGate, SampleGate
from search_space.gates.scaled import FixedScale, LearnedScale
from search_space.gates.squashed import SigmoidGate, TanhGate

__all__ = [
    "GATES",
    "Add",
    "ConvexGate",
    "ConvexInducerGate",
    "ConvexSampleGate",
    "FixedScale",
    "Gate",
    "InducerGate",
    "LearnedScale",
    "Multiply",
    "Prepend",
    "SampleGate",
    "SigmoidGate",
    "TanhGate",
    "WeightedGate",
]

_KINDS: tuple[type[Gate], ...] = (
    Add,
    FixedScale,
    LearnedScale,
    TanhGate,
    SigmoidGate,
    ConvexGate,
    WeightedGate,
    InducerGate,
    ConvexInducerGate,
    Multiply,
    Prepend,
    SampleGate,
    ConvexSampleGate,
)

GATES: Mapping[str, type[Gate]] = {gate.name: gate for gate in _KINDS}
"""Every gate by its name."""
