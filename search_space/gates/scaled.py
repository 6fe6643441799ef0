"""Gates that scale what is added, by a fixed or by a trained number."""

import math
from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import ScalePer
from search_space.errors import InvalidEditError
from search_space.gates.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedScale(Gate):
    """``h <- h + s Delta`` with a fixed s.

    Attributes:
        value: The scale s; finite and above 0.

    Raises:
        InvalidEditError: If the scale is not finite and positive.
    """

    name: ClassVar[str] = "scale"

    value: float

    def __post_init__(self) -> None:
        """Check the range; 4 and 4.0 are one scale, in JSON too."""
        if not (self.value > 0 and math.isfinite(self.value)):
            raise InvalidEditError(f"a fixed scale must be finite and above 0; got {self.value}.", rule="scale")
        object.__setattr__(self, "value", float(self.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedScale(Gate):
    """``h <- h + s Delta`` with trained s, which starts at 1.

    Attributes:
        per: For what there is an s: the sublayer, a channel of what is written, or a head.
    """

    name: ClassVar[str] = "scale_learned"

    per: ScalePer = ScalePer.SUBLAYER
