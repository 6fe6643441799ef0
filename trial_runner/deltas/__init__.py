"""Trainable modules, one file per functional form. A new form is a file here and an entry of `DELTAS`."""

from collections.abc import Mapping

from search_space import forms
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
from trial_runner.deltas.whole_model.intrinsic import IntrinsicDelta
from trial_runner.deltas.whole_model.sparse import SparseDelta
from trial_runner.deltas.whole_model.whole_delta import FullDelta

__all__ = ["DELTAS", "DeltaModule", "FormDelta", "SharedDelta"]

DELTAS: Mapping[str, type[DeltaModule]] = {
    forms.SoftmaxMemory.name: SoftmaxMemoryDelta,
    forms.Bottleneck.name: BottleneckDelta,
    forms.LowRank.name: LowRankDelta,
    forms.Dora.name: DoraDelta,
    forms.Phm.name: PhmDelta,
    forms.Diagonal.name: DiagonalDelta,
    forms.Constant.name: ConstantDelta,
    forms.Prompt.name: PromptDelta,
    forms.EncodedPrompt.name: PromptDelta,
    forms.Full.name: FullDelta,
    forms.Sparse.name: SparseDelta,
    forms.Intrinsic.name: IntrinsicDelta,
    forms.Vera.name: VeraDelta,
}
"""Module class of every form, by the form's name."""
