"""Gates that scale the contribution by a fixed or a trained number."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from search_space.affine import AffineCount
from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Port, ScalePer
from search_space.edit_protocol import EditEndpoints
from search_space.errors import InvalidEditError
from search_space.gates.gate import Gate
from search_space.gates.plain import Add
from search_space.rules import rule_error


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedScale(Gate):
    """``h <- h + s Delta`` with a fixed s.

    Attributes:
        value: Scale s; finite and above 0. The default is that of He et al. 2022 for classification.

    Raises:
        InvalidEditError: If the scale is not finite and positive.
    """

    name: ClassVar[str] = "scale"
    is_plain: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True

    value: float = 2.0

    def __post_init__(self) -> None:
        """Check the range and convert to float, so that 4 and 4.0 are one scale, in JSON too."""
        if not (self.value > 0 and math.isfinite(self.value)):
            raise InvalidEditError(f"a fixed scale must be finite and above 0; got {self.value}.", rule="scale")
        object.__setattr__(self, "value", float(self.value))

    def canonical(self) -> Gate:
        """Return plain addition for a scale of 1."""
        return Add() if self.value == 1 else self

    def pack_key(self) -> Gate:
        """Return one gate for all scales, which are numbers beside the products."""
        return FixedScale(value=1.0)

    @property
    def fixed_scale(self) -> float | None:
        """Scale s."""
        return self.value

    @property
    def label(self) -> str:
        """Factor, such as ``×2``; He et al. 2022 call such adapters scaled."""
        return f"×{self.value:.3g}"

    @property
    def _factor(self) -> str:
        return f"{self.value:g} "


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScale(Gate):
    """``h <- h + s Delta`` with trained s, which starts at 1.

    Attributes:
        per: Granularity of s: one for the sublayer, per output channel, or per head.
    """

    name: ClassVar[str] = "scale_learned"
    is_plain: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True
    option_keys: ClassVar[Mapping[str, str]] = {"per": "scale_per"}

    per: ScalePer = ScalePer.SUBLAYER

    def check(self, edit: EditEndpoints) -> None:
        """Refuse a scale per head at other ports than the heads."""
        if self.per is ScalePer.HEAD and edit.write is not Port.HEAD:
            raise rule_error("per", f"one per head at {edit.write}", "Use one per channel.")

    def count(self, edit: EditEndpoints, shape: BackboneShape) -> AffineCount:
        """Count the numbers s."""
        channels, heads = shape.port_width(edit.write), shape.query_heads
        return AffineCount(extras={ScalePer.SUBLAYER: 1, ScalePer.CHANNEL: channels, ScalePer.HEAD: heads}[self.per])

    @property
    def qualified_name(self) -> str:
        """Name with the granularity."""
        return self.name if self.per is ScalePer.SUBLAYER else f"{self.name}:{self.per}"

    @property
    def label(self) -> str:
        """Name with the granularity."""
        return "learned scale" if self.per is ScalePer.SUBLAYER else f"learned scale per {self.per}"

    @property
    def variant(self) -> str | None:
        """Granularity; None for one scale per sublayer."""
        return None if self.per is ScalePer.SUBLAYER else f"per {self.per}"

    @property
    def _factor(self) -> str:
        return {ScalePer.SUBLAYER: "s ", ScalePer.CHANNEL: "s ⊙ ", ScalePer.HEAD: "s_i "}[self.per]
