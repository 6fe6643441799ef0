"""Model features of a configuration: the structure, the learning rate and the size of each side."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from search_space.dimensions import Site
from search_space.edit import Edit
from search_space.gates import FixedScale
from search_space.layers import AllLayers
from search_space.space.space import Candidate
from studies.records import TrialRecord

_WHOLE_SITES = (Site.ATTENTION, Site.FFN)
_OWN_DIMENSIONS = ("name", "width", "widened", "heads", "activation")

_STEPS = (0.2, 0.4, 0.6, 0.8)

SMALLEST = 2.0**-10
"""Share of the budget below which all sizes are equal to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideStructure:
    """Structure of the edits at attention or elsewhere, without sizes and learning rates.

    Attributes:
        form: Functional forms.
        write: Tensors that are written.
        read: Tensors that are read.
        insertion: ``sequential``, ``parallel``, or both.
        heads: Block structure of the forms, over all heads or one block per head.
        gate: Composition functions.
        activation: Nonlinearities; empty without any.
        other: Remaining properties of edits: norm, bias, init, keys of an inducer, and the like. Of several forms at
            one site also the tensors that each writes, and the first one's share of the widths in steps of a fifth.
        layers: Kinds of layer choices; empty for all layers.
        scale: Mean of the base-2 logarithms of the fixed scales; 0 without any.
    """

    form: frozenset[str]
    write: frozenset[str]
    read: frozenset[str]
    insertion: frozenset[str]
    heads: frozenset[str]
    gate: frozenset[str]
    activation: frozenset[str]
    other: frozenset[str]
    layers: frozenset[str]
    scale: float

    @classmethod
    def of(cls, edits: Sequence[Edit]) -> "SideStructure":
        """Return the structure of at least one edit."""
        scales = [math.log2(edit.gate.value) for edit in edits if isinstance(edit.gate, FixedScale)]
        activations = (getattr(edit.form, "activation", None) for edit in edits)
        return cls(
            form=frozenset(edit.form.name for edit in edits),
            write=frozenset(_at(edit, edit.write) for edit in edits),
            read=frozenset(_at(edit, edit.read or "none") for edit in edits),
            insertion=frozenset(edit.insertion.value for edit in edits),
            heads=frozenset(edit.heads.value for edit in edits),
            gate=frozenset(edit.gate.name for edit in edits),
            activation=frozenset(one.value for one in activations if one is not None),
            other=frozenset([*(fact for edit in edits for fact in _facts(edit)), *_of_mixed(edits)]),
            layers=frozenset(str(edit.layers) for edit in edits if not isinstance(edit.layers, AllLayers)),
            scale=sum(scales) / len(scales) if scales else 0.0,
        )


def is_mixed(edits: Sequence[Edit]) -> bool:
    """Return whether several forms are at one site."""
    return len({edit.form.name for edit in edits}) > 1 and len({edit.site for edit in edits}) == 1


def _at(edit: Edit, port: str) -> str:
    """Return the port, with its site unless that is all attention or all FFN."""
    return str(port) if edit.site in _WHOLE_SITES else f"{edit.site}.{port}"


def _of_mixed(edits: Sequence[Edit]) -> list[str]:
    """Return the written tensors by form and the widths' share where several forms are at one site; else nothing."""
    if not is_mixed(edits):
        return []
    widths: dict[str, int] = {}
    for edit in edits:
        width = 0 if edit.sized_form is None else edit.sized_form.width
        widths[edit.form.name] = max(width, widths.get(edit.form.name, 0))
    first = min(widths)
    share = widths[first] / max(1, sum(widths.values()))
    steps = [f"{first} above {step}" for step in _STEPS if share > step]
    return [*(f"{edit.form.name} at {edit.write}" for edit in edits), *steps]


def _facts(edit: Edit) -> list[str]:
    """Return the fields of the form and of the gate without a dimension of their own."""
    form = [(f.name, getattr(edit.form, f.name)) for f in fields(edit.form) if f.name not in _OWN_DIMENSIONS]
    gate = [(f.name, getattr(edit.gate, f.name)) for f in fields(edit.gate) if f.name != "value"]
    return [f"{name}={value}" for name, value in (*form, *gate)]


@dataclass(frozen=True, slots=True)
class TrainedSide:
    """Model features of one side of a configuration.

    Attributes:
        structure: Structure of the edits.
        unit_lr: Learning rate in the range of its form on a logarithmic scale, from -1 to 1.
        log2_budget_fraction: Base-2 logarithm of the share of the budget that the side stores.
    """

    structure: SideStructure
    unit_lr: float
    log2_budget_fraction: float


Features = tuple[TrainedSide | None, TrainedSide | None]
"""Model features of a configuration: attention, then the FFN; None without edits there."""


def features_of(
    trial: TrialRecord | Candidate, budget: int, position_of: Callable[[Sequence[Edit], float], float]
) -> Features:
    """Return the model features of a trial or a candidate.

    Args:
        budget: Most stored parameters.
        position_of: Function from the edits of a side and their peak learning rate to its position, as `unit_lr_of`.
    """
    stored = trial.counts.stored if isinstance(trial, Candidate) else trial.stored_parameters
    at_attention = round(trial.attention_share * stored)

    def side(edits: Sequence[Edit], peak_lr: float | None, own: int) -> TrainedSide | None:
        if not edits or peak_lr is None:
            return None
        return TrainedSide(SideStructure.of(edits), position_of(edits, peak_lr), log2_budget_fraction(own, budget))

    configuration = trial.configuration
    attention = side(configuration.attention, trial.attention_learning_rate, at_attention)
    return attention, side(configuration.ffn, trial.ffn_learning_rate, stored - at_attention)


def unit_lr_of(lr: float, low: float, high: float) -> float:
    """Return the position of a learning rate in a range on a logarithmic scale, from -1 to 1."""
    if low == high:
        return 0.0
    return 2 * (math.log(lr) - math.log(low)) / (math.log(high) - math.log(low)) - 1


def lr_at(unit_lr: float, low: float, high: float) -> float:
    """Return the learning rate at a position of a range, the inverse of `unit_lr_of`."""
    place = (unit_lr + 1) / 2
    lr = math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
    return min(max(lr, low), high)


def log2_budget_fraction(n_parameters: int, budget: int) -> float:
    """Return the base-2 logarithm of a share of the budget, at least that of ``SMALLEST``."""
    return math.log2(max(n_parameters / budget, SMALLEST))
