"""Diagonal: one factor per channel, which is (IA)^3 where it multiplies what it reads."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagonal(Form):
    """One trained factor per channel.

    With the gate ``mul``, ``h * l`` with l = 1 at the start ((IA)^3, Liu et al. 2022); with an additive gate,
    ``z * w`` with w = 0 at the start.
    """

    name: ClassVar[str] = "diag"
