"""What every gate answers (He et al. 2022, "composition function"): how an edit's output joins the tensor it writes."""

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
    """Whose attention logits a gate of log-sum-exps sets against those of the frozen keys."""

    TABLE = "table"
    QUERY = "query"


class Gate:
    """How an edit's output joins the tensor it writes: a frozen dataclass, and what the rest asks of it.

    Attributes:
        name: As stored, and in study files.
        logits: Whose logits it weighs; None for gates that are not of log-sum-exps.
        outside: The place outside the sublayers it belongs to; None for the sublayers.
        multiplies: Whether it is for forms that are factors.
        is_convex: Whether it takes away of the frozen tensor what it adds.
        is_closing: Whether it squashes what is added, so that nothing may be.
        starts_closed: Whether nothing goes through when training begins.
        is_plain: Whether every form with two ends can have it.
        is_linear: Whether it multiplies by numbers that are the same for every token and head.
        turn: Where it is offered among the gates that fit.
        searched: The key of a study file that lists the values of each of its fields.
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
        """The gate with each combination of what a search can choose of it.

        Args:
            values: By the key of a study file.
        """
        drawn = product(*(values[key] for key in cls.option_keys.values()))
        return tuple(cls(**dict(zip(cls.option_keys, one, strict=True))) for one in drawn)

    def check(self, edit: EditEndpoints) -> None:
        """Refuse an edit that the gate cannot join.

        Raises:
            InvalidEditError: If it breaks a rule of the gate.
        """

    def check_on(self, edit: EditEndpoints, shape: BackboneShape) -> None:
        """Refuse a backbone on which the gate means nothing.

        Raises:
            InvalidEditError: If it breaks a rule of the gate.
        """

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Parameters of the gate of an edit at one sublayer."""
        return NO_PARAMETERS

    def inference_weights(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Weights that a token is multiplied with at one sublayer; see `Form.inference_weights`."""
        return AffineCount(weights=self.count(edit, shape).weights)

    def canonical(self) -> "Gate":
        """The gate that is the same function with the same parameters."""
        return self

    def pack_key(self) -> "Gate":
        """Equal for gates that a pack can compute together."""
        return self

    @property
    def fixed_scale(self) -> float | None:
        """The number that what is added is multiplied with; None without one."""
        return None

    @property
    def qualified_name(self) -> str:
        """Its name, with what it is for or how wide its keys are if that is not the usual: ``inducer:4``."""
        return self.name

    @property
    def label(self) -> str:
        """What is said of it beside the form, such as ``×2``; empty of what goes without saying."""
        return ""

    @property
    def key_label(self) -> str:
        """What is said of keys of its own; empty without."""
        return ""

    @property
    def variant(self) -> str | None:
        """What tells published methods apart beside its name."""
        return None

    def formula(self, edit: EditEndpoints, delta: DeltaFormula, logit_divisor: str) -> str:
        """What is written.

        Args:
            delta: Its contribution.
            root: The divisor of attention's logits.
        """
        return f"{write_symbol(edit)} + {self._factor}{summand(edit, delta)}"

    def scaled(self, body: str) -> str:
        """A contribution times its factor, without what it joins."""
        return f"{self._factor}{body}"

    @property
    def _factor(self) -> str:
        return ""

    def matrices(self, shape: BackboneShape) -> str:
        """The shapes of its own matrices, after those of the form."""
        return ""


def summand(edit: EditEndpoints, delta: DeltaFormula) -> str:
    """A contribution as a summand; over the heads, where they are summed."""
    return f"(Σ_i {delta.body}{delta.bias})" if is_summed(edit) else delta.as_factor
