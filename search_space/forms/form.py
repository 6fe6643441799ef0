"""Functional form (He et al. 2022): the interface of all forms; each file of this folder contains one.

Shapes use `D_in` for the input width, `D_out` for the output width and `R` for the bottleneck. A form with several
heads has one such map per head and works on the head's slice.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import Field, replace
from enum import StrEnum
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


class PeftKind(StrEnum):
    """Adapter types of peft."""

    LORA = "LORA"
    DORA = "DORA"
    VERA = "VERA"
    IA3 = "IA3"
    PROMPT = "PROMPT_TUNING"


class Form(ABC):
    """Function that an edit computes from its input: a frozen dataclass with counts, rules, names and a formula.

    Attributes:
        name: Name in storage and study files.
        learning_rates: Default search range of the peak learning rate, for trainings of 200 steps.
        title: Name in errors.
        size_symbol: Letter of the size in He et al. 2022: r for a bottleneck, l for rows.
        outside_site: Site outside the sublayers; None for forms of sublayers.
        reads: Whether the form has an input.
        unmergeable_reason: Reason why the output cannot be merged into weights; None for linear maps and constants.
        multiplies: Whether the form is a factor if it reads the port it writes.
        is_opt_in: Whether a study has a learning rate for the form only if it names the form; true for forms that are
            newer than stored studies.
        needs_weights: Whether the form is computed from frozen weights, and not only from their outputs.
        peft: Equivalent adapter type of peft; None without one.
        logits: Kind of attention logits for log-sum-exp gates; None if no such gate fits.
        per_head: Usual heads of a form per head; None if it has one block only.
        dimensions: Search dimensions of the form besides ports, heads and bottleneck.
        port_sets_at_attention: Sets of ports that a search edits together at attention.
        port_sets_at_ffn: Sets of ports that a search edits together at the FFN.
        heads: Number of blocks: one, or one per head.
        widened: Number of sublayers, counted from the output, whose width is one step more.
        activation: Nonlinearity; None without one.
        bias: Whether the form has biases.
        reparameterization: Hidden width of the MLP that makes the tables during training; None without.
        robust: Whether prediction adds a table tuned for each batch.
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
    peft: ClassVar[PeftKind | None] = None
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
        """Whether the contribution is exactly zero at the start of training."""
        return True

    @property
    def variant(self) -> str | None:
        """Difference between published methods that the dimensions do not show; None for none."""
        return None

    @property
    def shared_parameters(self) -> tuple[Hashable, int] | None:
        """Key and number of parameters shared by all edits with that key; None without."""
        return None

    @property
    def size(self) -> str:
        """Width, or the two widths of widened forms; empty without one."""
        return ""

    @property
    def smallest(self) -> "Form":
        """Form with its smallest bottleneck; itself without one, or if the bottleneck defines the form."""
        return self

    def check_heads(self, edit: EditEndpoints) -> None:  # noqa: B027 - most have no such rule
        """Refuse heads that the form cannot have.

        Raises:
            InvalidEditError: If they break a rule of the form.
        """

    def check(self, edit: EditEndpoints) -> None:  # noqa: B027 - most have no such rule
        """Refuse an edit that the form cannot be part of.

        Raises:
            InvalidEditError: If it breaks a rule of the form.
        """

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:  # noqa: B027 - most have no such rule
        """Refuse a backbone that the form cannot be used on.

        Raises:
            InvalidEditError: If it breaks a rule of the form.
        """

    @classmethod
    def has_usual_bias(cls, write: Port) -> bool:
        """Return whether the form has biases by default.

        Not at k, where they would shift every logit of a query equally (V12), nor at the heads (He et al. 2022).
        """
        return write not in (Port.HEAD, Port.K)

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Return whether another edit computes the same or nearly the same, as o does for concat (V9)."""
        return edit.write is Port.CONCAT

    @abstractmethod
    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the parameters of the form at one instance of an edit, without its gate."""

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the weights that multiply a token at one instance of an edit: those of matrices and factors."""
        stored = self.count(edit, shape)
        repeats = query_heads_per_block(edit, shape)
        return AffineCount(weights=repeats * stored.weights, weights_per_width=repeats * stored.weights_per_width)

    def training_surplus(self, edit: EditEndpoints, shape: BackboneShape) -> int:
        """Return trained minus stored parameters of an edit."""
        return 0

    def pack_key(self) -> "Form":
        """Return a form equal for all forms that a pack computes together, padded to the largest width."""
        return self.smallest

    def describe(self, edit: EditEndpoints) -> str:
        """Return the edit in words without its ports, such as ``parallel adapter r=9, ×2``."""
        return ", ".join(
            word
            for word in (f"{self.display_name(edit)}{self.size_suffix}", self.gate_label(edit), edit.gate.key_label)
            if word
        )

    @property
    def size_suffix(self) -> str:
        """Size as a suffix of the name, such as `` r=9``; empty without one."""
        return f" {self.size_symbol}={self.size}" if self.size else ""

    def gate_label(self, edit: EditEndpoints) -> str:
        """Return the gate's label; empty if the form's name implies the gate."""
        return str(edit.gate.label)

    @abstractmethod
    def display_name(self, edit: EditEndpoints) -> str:
        """Return the name of the edit, such as ``"parallel adapter"``."""

    @abstractmethod
    def formula(self, edit: EditEndpoints, shape: BackboneShape) -> str:
        """Return the formula of an edit at a sublayer, with the shapes of its matrices."""


class SizedForm(Form):
    """A form with a bottleneck.

    Attributes:
        width: Bottleneck R. At least 1.
        can_widen: Whether single sublayers can have a width that is one step more.
    """

    __slots__ = ()

    can_widen: ClassVar[bool] = True

    width: int

    def __post_init__(self) -> None:
        """Check the sizes; tables from an MLP have one length."""
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
        """Increment of the width."""
        return 1

    @property
    def has_rank(self) -> bool:
        """Whether the width is a rank or a hidden width, and not a number of rows or of weights."""
        return self.size_symbol == Form.size_symbol and self.outside_site is None

    @property
    def size(self) -> str:
        """Width, or the two widths of widened forms."""
        return f"{self.width}–{self.width + self.width_step}" if self.widened else f"{self.width}"

    @property
    def smallest(self) -> "SizedForm":
        """Form with its smallest bottleneck; itself if the bottleneck defines the form."""
        return self.resized(self.width_step, 0) if self.can_widen else self

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """Return the largest meaningful width on a backbone; None if it is unbounded."""
        return None

    def resized(self, width: int, widened: int) -> "SizedForm":
        """Return the form with another width.

        Args:
            widened: Number of sublayers with one step more; ignored by forms that cannot widen.
        """
        return replace(self, width=width, widened=widened) if self.can_widen else replace(self, width=width)


class LinearForm(SizedForm):
    """A linear map of low rank in parallel to a projection."""

    __slots__ = ()

    unmergeable_reason: ClassVar[str | None] = None
    port_sets_at_ffn: ClassVar[tuple[WriteReadPairs, ...]] = PROJECTION_SETS_AT_FFN

    def is_near_duplicate(self, edit: EditEndpoints, shape: BackboneShape) -> bool:
        """Return true for sequential maps of q, k and v, which nearly equal LoRA (V7), and at concat."""
        if edit.write in (Port.Q, Port.K, Port.V):
            return edit.read is edit.write
        return edit.write is Port.CONCAT

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """Return the smaller width of a block, the largest rank of its matrix."""
        return min(block_widths(edit, shape))


class WeightForm(SizedForm):
    """A change of the backbone's weights with a size of its own."""

    __slots__ = ()

    outside_site: ClassVar[Site | None] = Site.GLOBAL
    reads: ClassVar[bool] = False
    needs_weights: ClassVar[bool] = True
    unmergeable_reason: ClassVar[str | None] = None
    can_widen: ClassVar[bool] = False

    def largest_width(self, edit: EditEndpoints, shape: BackboneShape) -> int | None:
        """Return the number of frozen weights."""
        return shape.frozen_parameters

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse a size above the number of frozen weights."""
        most = shape.frozen_parameters
        if self.width > most:
            raise rule_error("width", f"{self.name} of {self.width:,} where the backbone has {most:,}", "Lower it.")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count one weight per unit of the size."""
        return AffineCount(weights_per_width=1)


def composed_formula(edit: EditEndpoints, shape: BackboneShape, delta: DeltaFormula) -> str:
    """Return the formula of a contribution under its gate, with the shapes of both parts' matrices."""
    right = edit.gate.formula(edit, delta, logit_divisor(edit, shape))
    return f"{write_symbol(edit)} <- {right}; {delta.matrices}{per_head_suffix(edit, shape)}{edit.gate.matrices(shape)}"


def insertion_word(edit: EditEndpoints) -> str:
    """Return ``sequential`` or ``parallel``."""
    return "sequential" if edit.insertion is Insertion.SEQUENTIAL else "parallel"


def activation_prefix(activation: Activation, usual: Activation) -> str:
    """Return the activation as a prefix of a name; empty for the usual one."""
    return "" if activation is usual else f"{activation.label} "


def reparameterization_surplus(
    edit: EditEndpoints, shape: BackboneShape, *, length: int, hidden: int, per_layer: int
) -> int:
    """Return trained minus stored parameters of tables from an MLP.

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
    """Return whether an edit reads q and writes the heads, as attention's own logits do."""
    return edit.write is Port.HEAD and edit.read is Port.Q
