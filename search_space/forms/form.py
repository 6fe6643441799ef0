"""What every functional form answers (He et al. 2022, "functional form"): one file of this folder holds one form.

Shapes use `D_in` for the width that is read, `D_out` for the width that is written and `R` for the bottleneck. A
form with several heads holds one such map per head and works on the head's slice.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import Field, replace
from typing import Any, ClassVar

from search_space.affine import AffineCount, linear_parameters
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Activation, Heads, Insertion, Port, Site
from search_space.edit_protocol import (
    PROJECTION_SETS_AT_FFN,
    EditEndpoints,
    WriteReadPairs,
    block_widths,
    query_heads_per_block,
    sublayers_of,
)
from search_space.errors import InvalidEditError
from search_space.gates.gate import Logits
from search_space.rules import check_positive_integer, is_integer, rule_error
from search_space.symbols import DeltaFormula, logit_divisor, per_head_suffix, write_symbol


class Form(ABC):
    """What an edit computes of the tensor it reads: a frozen dataclass, and what the rest asks of it.

    Attributes:
        name: As stored, and in study files.
        learning_rates: Default search range of its peak learning rate, for trainings of 200 steps.
        title: As errors call it.
        letter: Of its size, as He et al. 2022 have it: r of a bottleneck, l of rows.
        outside: The place outside the sublayers that it belongs to; None for the sublayers.
        reads: Whether it is computed of a tensor.
        unmergeable: Why no weights can hold what it computes; None where they can, of linear maps and constants.
        multiplies: Whether it is a factor, where it reads what it writes.
        is_later: Whether it came after studies were stored; a study has a rate for it only where it names the form.
        needs_weights: Whether it is computed of frozen weights, and not only of what they compute.
        logits: Which gates of log-sum-exps it fits; None for none.
        per_head: Its usual heads where it works per head; None if it cannot.
        dimensions: What a search can choose of it beside its ends, its heads and its bottleneck.
        together_at_attention: Tensors that a search writes together.
        together_at_ffn: The same at the FFN.
        heads: In how many blocks it works.
        widened: How many sublayers, counted from the output, have a width that is one step more.
        activation: Nonlinearity; None without one.
        bias: Whether it has biases.
        reparameterization: Hidden width of the MLP that makes its tables while it is trained; None without.
        robust: Whether prediction adds a table that it tunes for each batch.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    name: ClassVar[str]
    learning_rates: ClassVar[tuple[float, float]]
    title: ClassVar[str] = ""
    size_symbol: ClassVar[str] = "r"
    outside_site: ClassVar[Site | None] = None
    reads: ClassVar[bool] = True
    unmergeable_reason: ClassVar[str | None] = "it is not linear"
    multiplies: ClassVar[bool] = False
    is_opt_in: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = False
    logits: ClassVar[Logits | None] = None
    per_head: ClassVar[Heads | None] = None
    dimensions: ClassVar[tuple[str, ...]] = ()
    port_sets_at_attention: ClassVar[tuple[WriteReadPairs, ...]] = ()
    port_sets_at_ffn: ClassVar[tuple[WriteReadPairs, ...]] = ()

    heads: Heads = Heads.SINGLE
    widened: int = 0
    activation: Activation | None = None
    bias: bool = False
    reparameterization: int | None = None
    robust: bool = False

    @property
    def starts_at_zero(self) -> bool:
        """Whether it is exactly nothing when training begins."""
        return True

    @property
    def variant(self) -> str | None:
        """What tells published methods apart beside the dimensions."""
        return None

    @property
    def shared_parameters(self) -> tuple[Hashable, int] | None:
        """What several edits have in common, with its number of parameters; None for nothing."""
        return None

    @property
    def size(self) -> str:
        """Its width, or the two widths it has; empty without one."""
        return ""

    @property
    def smallest(self) -> "Form":
        """The form with its smallest bottleneck; itself without one, and where the bottleneck is what the form is."""
        return self

    def check_heads(self, edit: EditEndpoints) -> None:  # noqa: B027 - most have no such rule
        """Refuse blocks that the form cannot have.

        Raises:
            InvalidEditError: If they break a rule of the form.
        """

    def check(self, edit: EditEndpoints) -> None:  # noqa: B027 - most have no such rule
        """Refuse an edit in which the form means nothing.

        Raises:
            InvalidEditError: If it breaks a rule of the form.
        """

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:  # noqa: B027 - most have no such rule
        """Refuse a backbone on which the form means nothing.

        Raises:
            InvalidEditError: If it breaks a rule of the form.
        """

    @classmethod
    def has_usual_bias(cls, write: Port) -> bool:
        """Whether it usually has biases, where it can.

        Not at k, where they would move every logit of a query alike (V12), nor at the heads (He et al. 2022).
        """
        return write not in (Port.HEAD, Port.K)

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Whether another edit of the form, or of another, computes the same or nearly: concat is beside o (V9)."""
        return edit.write is Port.CONCAT

    @abstractmethod
    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Parameters of the form of an edit at one of its places, without its gate."""

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Weights that a token is multiplied with at one of its places, as far as they are of matrices or factors."""
        stored = self.count(edit, shape)
        served = query_heads_per_block(edit, shape)
        return AffineCount(weights=served * stored.weights, weights_per_width=served * stored.weights_per_width)

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Trained minus stored parameters of an edit."""
        return 0

    def pack_key(self) -> "Form":
        """Equal for forms that a pack can compute together: tensors of all widths are padded to one."""
        return self.smallest

    def describe(self, edit: EditEndpoints) -> str:
        """The edit in words, without its place, such as ``parallel adapter r=9, ×2``."""
        return ", ".join(
            word
            for word in (f"{self.display_name(edit)}{self.size_suffix}", self.gate_label(edit), edit.gate.key_label)
            if word
        )

    @property
    def size_suffix(self) -> str:
        """Its size as it follows its name, such as `` r=9``; empty without one."""
        return f" {self.size_symbol}={self.size}" if self.size else ""

    def gate_label(self, edit: EditEndpoints) -> str:
        """What is said of the gate; nothing where the name says it."""
        return str(edit.gate.label)

    @abstractmethod
    def display_name(self, edit: EditEndpoints) -> str:
        """What the edit is called, such as ``"parallel adapter"``."""

    @abstractmethod
    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """What an edit computes at a sublayer, with the shapes of its matrices."""


class SizedForm(Form):
    """A form with a bottleneck.

    Attributes:
        width: Its bottleneck R. At least 1.
        can_widen: Whether single sublayers can have a width that is one step more.
    """

    __slots__ = ()

    can_widen: ClassVar[bool] = True

    width: int

    def __post_init__(self) -> None:
        """Refuse sizes that cannot be, and an MLP for tables of several lengths."""
        check_positive_integer(self.width, "a bottleneck", " Raise it or drop the edit.")
        if not (is_integer(self.widened) and self.widened >= 0):
            raise InvalidEditError(
                f"the number of widened sublayers must be a whole number of at least 0; got {self.widened!r}.",
                rule="width",
            )
        if self.reparameterization is not None:
            check_positive_integer(self.reparameterization, "the hidden width of the reparameterization")
            if self.widened:
                got = f"{self.widened} widened sublayers"
                raise InvalidEditError(f"a reparameterized table has one length; got {got}.", rule="V17")

    @property
    def width_step(self) -> int:
        """By how much the width grows at a time."""
        return 1

    @property
    def size(self) -> str:
        """Its width, or the two widths it has."""
        return f"{self.width}–{self.width + self.width_step}" if self.widened else f"{self.width}"

    @property
    def smallest(self) -> "SizedForm":
        """The form with its smallest bottleneck; itself where the bottleneck is what the form is."""
        return self.resized(self.width_step, 0) if self.can_widen else self

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """The largest meaningful width on a backbone; None where nothing bounds it."""
        return None

    def resized(self, width: int, widened: int) -> "SizedForm":
        """The form with another width.

        Args:
            widened: How many sublayers have one step more; plays no part where that cannot be.
        """
        return replace(self, width=width, widened=widened) if self.can_widen else replace(self, width=width)


class LinearForm(SizedForm):
    """A linear map of low rank beside a projection."""

    __slots__ = ()

    unmergeable_reason: ClassVar[str | None] = None
    port_sets_at_ffn: ClassVar[tuple[WriteReadPairs, ...]] = PROJECTION_SETS_AT_FFN

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Maps of q, k and v are beside LoRA (V7)."""
        if edit.write in (Port.Q, Port.K, Port.V):
            return edit.read is edit.write
        return edit.write is Port.CONCAT

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """The smaller of the widths of a block: more ranks say nothing more."""
        return min(block_widths(edit, shape))


class WeightForm(SizedForm):
    """A change of the backbone's weights that has a size of its own."""

    __slots__ = ()

    outside_site: ClassVar[Site | None] = Site.GLOBAL
    reads: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = True
    unmergeable_reason: ClassVar[str | None] = None
    can_widen: ClassVar[bool] = False

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """All weights."""
        return shape.frozen_parameters

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """There are only so many weights."""
        most = shape.frozen_parameters
        if self.width > most:
            raise rule_error("width", f"{self.name} of {self.width:,} where the backbone has {most:,}", "Lower it.")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Its size."""
        return AffineCount(weights_per_width=1)


def composed_formula(edit: EditEndpoints, shape: BackboneShape, delta: DeltaFormula) -> str:
    """The formula of a contribution under its gate, with the shapes of the matrices of both."""
    joined = edit.gate.formula(edit, delta, logit_divisor(edit, shape))
    return (
        f"{write_symbol(edit)} <- {joined}; {delta.matrices}{per_head_suffix(edit, shape)}{edit.gate.matrices(shape)}"
    )


def insertion_word(edit: EditEndpoints) -> str:
    """Where a form is, in a word."""
    return "sequential" if edit.insertion is Insertion.SEQUENTIAL else "parallel"


def activation_prefix(activation: Activation, usual: Activation) -> str:
    """An activation in words; nothing for the usual one."""
    return "" if activation is usual else f"{activation.label} "


def reparameterization_surplus(
    edit: EditEndpoints, shape: BackboneShape, *, length: int, hidden: int, per_layer: int
) -> int:
    """Trained minus stored parameters of tables from an MLP.

    Each attention kind has one stack of (l, d) -> mid -> the tables of all its layers.

    Args:
        length: Rows l of a table.
        hidden: Hidden width mid of the MLP.
        per_layer: Numbers in a row of a layer's tables.
    """
    surplus = 0
    sublayers = sublayers_of(edit, shape)
    for kind in dict.fromkeys(sublayer.site for sublayer in sublayers):
        outputs = per_layer * sum(sublayer.site is kind for sublayer in sublayers)
        surplus += (
            length * shape.width
            + linear_parameters(shape.width, hidden)
            + linear_parameters(hidden, outputs)
            - length * outputs
        )
    return surplus


def reads_query_at_heads(edit: EditEndpoints) -> bool:
    """Whether an edit is where attention's own logits are: from q to the heads."""
    return edit.write is Port.HEAD and edit.read is Port.Q
