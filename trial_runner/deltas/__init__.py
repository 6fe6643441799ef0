"""The trainable modules, one file per functional form. A new form is a file here and a word in `DELTAS`."""

from collections.abc import Mapping

import torch
from torch import Tensor

from search_space.backbones.shape import BackboneShape
from search_space.edit import Edit
from search_space.forms import (
    Bottleneck,
    Constant,
    Diagonal,
    Dora,
    EncodedPrompt,
    Form,
    Full,
    Intrinsic,
    LowRank,
    Phm,
    Prompt,
    SoftmaxMemory,
    Sparse,
    Vera,
)
from trial_runner.deltas.blocks import blocks_of
from trial_runner.deltas.bottleneck import BottleneckDelta
from trial_runner.deltas.constant import ConstantDelta
from trial_runner.deltas.diagonal import DiagonalDelta
from trial_runner.deltas.dora import DoraDelta
from trial_runner.deltas.form_delta import DeltaModule, FormDelta, FormPlace, SharedDelta
from trial_runner.deltas.frozen_matrix import FrozenMatrix
from trial_runner.deltas.lowrank import LowRankDelta
from trial_runner.deltas.phm import PhmDelta
from trial_runner.deltas.prompt import PromptDelta
from trial_runner.deltas.softmax_memory import SoftmaxMemoryDelta
from trial_runner.deltas.vera import VeraDelta
from trial_runner.deltas.whole_model import FrozenWeights, FullDelta, IntrinsicDelta, SparseDelta, WholeModelDelta
from trial_runner.errors import AttachError

__all__ = ["DELTAS", "DeltaModule", "FormDelta", "SharedDelta", "build_form", "build_shared", "build_whole"]

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


def build_form(  # noqa: PLR0913 - the place it stands at, thing by thing
    edit: Edit,
    width: int,
    shape: BackboneShape,
    generator: torch.Generator,
    *,
    shared: SharedDelta | None = None,
    index: int = 0,
    weight: FrozenMatrix | None = None,
) -> FormDelta:
    """The trainable module of an edit at one sublayer.

    Args:
        width: Width of its form at this sublayer; ignored by forms without one.
        generator: Draws the initial values, on the CPU.
        shared: What it shares with its like at other sublayers, from `build_shared`; needed where the form does.
        index: Which of them this sublayer is, from 0.
        weight: The frozen matrix that writes its port; needed where the form does.

    Raises:
        AttachError: If the form belongs to no sublayer, or what it shares is missing.
    """
    place = FormPlace(blocks=blocks_of(edit, shape), width=width, shared=shared, index=index, weight=weight)
    return _at_sublayers(edit).build(edit, place, generator)


def build_shared(edit: Edit, layers: int, shape: BackboneShape, generator: torch.Generator) -> SharedDelta:
    """What the modules of an edit at several sublayers share.

    Args:
        layers: At how many sublayers of a kind it acts.
        generator: Draws the initial values, on the CPU.

    Raises:
        AttachError: If they share nothing.
    """
    kind = _at_sublayers(edit).shares(edit.form)
    if kind is None:
        raise AttachError(f"sublayers must share something of a form to have it built; of {edit.form.name} nothing.")
    return kind.build(edit, layers, shape, generator)


def build_whole(form: Form, frozen: Mapping[str, Tensor], generator: torch.Generator) -> WholeModelDelta:
    """The trainable module of a form of the whole model.

    Args:
        frozen: Parameters of the frozen base model by name, tied ones once; referred to, not copied.
        generator: Draws what is random, on the CPU.

    Raises:
        AttachError: If the form is none of the whole model.
    """
    kind = DELTAS[form.name]
    if not issubclass(kind, WholeModelDelta):
        raise AttachError(f"a change of the whole model needs a form of it; got {form.name}. This is a bug.")
    return kind.build(form, FrozenWeights(frozen), generator)


def _at_sublayers(edit: Edit) -> type[FormDelta]:
    kind = DELTAS[edit.form.name]
    if not issubclass(kind, FormDelta):
        raise AttachError(f"a form must belong to sublayers to be attached there; got {edit.form.name}.")
    return kind
