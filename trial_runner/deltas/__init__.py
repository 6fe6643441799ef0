"""The trainable modules, one file per functional form. A new form is a file here and a word in `DELTAS`."""

from collections.abc import Mapping

from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Dora,
    EncodedPrompt,
    Full,
    Intrinsic,
    LowRank,
    Phm,
    Prompt,
    SoftmaxMemory,
    Sparse,
    Vera,
)
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.constant import ConstantDelta
from trial_runner.deltas.diagonal import DiagonalDelta
from trial_runner.deltas.dora import DoraDelta
from trial_runner.deltas.form_delta import DeltaModule, FormDelta, SharedDelta
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.phm import PhmDelta
from trial_runner.deltas.prompt import PromptDelta
from trial_runner.deltas.softmax_memory import SoftmaxMemoryDelta
from trial_runner.deltas.vera import VeraDelta
from trial_runner.deltas.whole_model import FullDelta, IntrinsicDelta, SparseDelta

__all__ = ["DELTAS", "DeltaModule", "FormDelta", "SharedDelta"]

DELTAS: Mapping[str, type[DeltaModule]] = {
    SoftmaxMemory.name: SoftmaxMemoryDelta,
    Bottleneck.name: BottleneckDelta,
    LowRank.name: LowRankDelta,
    Dora.name: DoraDelta,
    Phm.name: PhmDelta,
    Diagonal.name: DiagonalDelta,
    Constant.name: ConstantDelta,
    Prompt.name: PromptDelta,
    EncodedPrompt.name: PromptDelta,
    Full.name: FullDelta,
    Sparse.name: SparseDelta,
    Intrinsic.name: IntrinsicDelta,
    Vera.name: VeraDelta,
}
"""The module of every form by the form's name: what is built of it, and what it answers."""
