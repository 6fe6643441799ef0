"""Composition function (He et al. 2022): the interface of all gates."""

from collections.abc import Mapping, Sequence
from dataclasses import Field
from enum import StrEnum
from itertools import product
from typing import Any, ClassVar

from search_space.affine import NO_PARAMETERS, AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Site
from search_space.edit_protocol import EditEndpoints, is_summed
from search_space.symbols import DeltaFormula, write_symbol


class Logits(StrEnum):
    """Attention logits that a log-sum-exp gate weighs against those of the frozen keys."""

    TABLE = "table"
    QUERY = "query"


class Gate:
    """Operation that joins an edit's output with the tensor it writes: a frozen dataclass with counts and rules.

    Attributes:
        name: Name in storage and study files.
        logits: Attention logits that the gate weighs; None for gates without log-sum-exps.
        outside_site: Site outside the sublayers; None for gates of sublayers.
        multiplies: Whether the gate is for forms that are factors.
        is_convex: Whether the gate takes the share it adds away from the frozen tensor.
        is_closing: Whether the gate squashes the contribution, possibly to zero.
        starts_closed: Whether the contribution is zero at the start of training.
        is_plain: Whether the gate fits every form that reads and writes a port.
        is_linear: Whether the gate multiplies by the same numbers for every token and head.
        search_order: Position among the gates of a choice.
        option_keys: Field to the study-file key that lists its values.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    name: ClassVar[str]
    logits: ClassVar[Logits | None] = None
    outside_site: ClassVar[Site | None] = None
    multiplies: ClassVar[bool] = False
    is_convex: ClassVar[bool] = False
    is_closing: ClassVar[bool] = False
    starts_closed: ClassVar[bool] = False
    is_plain: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False
    search_order: ClassVar[int] = 1
    option_keys: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def variants(cls, values: Mapping[str, Sequence[Any]]) -> "tuple[Gate, ...]":
        """Return the gate with each combination of its searched values.

        Args:
            values: Values by study-file key.
        """
        combinations = product(*(values[key] for key in cls.option_keys.values()))
        return tuple(cls(**dict(zip(cls.option_keys, fields, strict=True))) for fields in combinations)

    def check(self, edit: EditEndpoints) -> None:
        """Refuse an edit that the gate does not fit.

        Raises:
            InvalidEditError: If it breaks a rule of the gate.
        """

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse a backbone that the gate cannot be used on.

        Raises:
            InvalidEditError: If it breaks a rule of the gate.
        """

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the parameters of an edit's gate at one sublayer."""
        return NO_PARAMETERS

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Return the weights that multiply a token at one sublayer; see `Form.inference_weights`."""
        return AffineCount(weights=self.count(edit, shape).weights)

    def canonical(self) -> "Gate":
        """Return the canonical gate of the same function with the same parameters."""
        return self

    def pack_key(self) -> "Gate":
        """Return a gate that is equal for all gates a pack computes together."""
        return self

    @property
    def fixed_scale(self) -> float | None:
        """Fixed factor of the contribution; None without one."""
        return None

    @property
    def qualified_name(self) -> str:
        """Name with unusual field values, such as ``inducer:4``."""
        return self.name

    @property
    def label(self) -> str:
        """Label beside the form's name, such as ``×2``; empty for the usual gate."""
        return ""

    @property
    def key_label(self) -> str:
        """Label of the gate's own keys; empty without."""
        return ""

    @property
    def variant(self) -> str | None:
        """Difference between published methods that the name does not show; None for none."""
        return None

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """Return the formula of the tensor written.

        Args:
            delta: Contribution of the form.
            logit_divisor: Divisor of attention's logits.
        """
        return f"{write_symbol(edit)} + {self._factor}{summand(edit, delta)}"

    def scaled(self, body: str) -> str:
        """Return a contribution times the gate's factor."""
        return f"{self._factor}{body}"

    @property
    def _factor(self) -> str:
        return ""

    def matrices(self, shape: BackboneShape) -> str:
        """Return the shapes of the gate's own matrices, which follow those of the form."""
        return ""


def summand(edit: EditEndpoints, delta: DeltaFormula) -> str:
    """Return a contribution as a summand; a sum over the heads where these are summed."""
    return f"(Σ_i {delta.body}{delta.bias})" if is_summed(edit) else delta.as_factor
