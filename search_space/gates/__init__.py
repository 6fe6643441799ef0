"""Gates: operations that join an edit's output with the tensor it writes.

A new gate is a class here and an entry of `GATES`.
"""

from collections.abc import Mapping

from search_space.gates.gate import Gate as Gate
from search_space.gates.log_sum_exp import ConvexGate as ConvexGate
from search_space.gates.log_sum_exp import ConvexInducerGate as ConvexInducerGate
from search_space.gates.log_sum_exp import InducerGate as InducerGate
from search_space.gates.log_sum_exp import WeightedGate as WeightedGate
from search_space.gates.plain import Add as Add
from search_space.gates.plain import Multiply as Multiply
from search_space.gates.plain import Prepend as Prepend
from search_space.gates.sample import ConvexSampleGate as ConvexSampleGate
from search_space.gates.sample import SampleGate as SampleGate
from search_space.gates.scaled import FixedScale as FixedScale
from search_space.gates.scaled import LearnedScale as LearnedScale
from search_space.gates.squashed import SigmoidGate as SigmoidGate
from search_space.gates.squashed import TanhGate as TanhGate

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
"""Gates by name."""
