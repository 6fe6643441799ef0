"""Gates without numbers: a sum, a product, and a concatenation of rows."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.dimensions import Site
from search_space.gates.gate import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Add(Gate):
    """``h <- h + Delta``."""

    name: ClassVar[str] = "add"
    is_plain: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiply(Gate):
    """``h <- h * l``: the gate of a diagonal that reads the port it writes."""

    name: ClassVar[str] = "mul"
    multiplies: ClassVar[bool] = True
    is_linear: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepend(Gate):
    """Concatenation before the existing rows: the gate of prompts."""

    name: ClassVar[str] = "prepend"
    outside_site: ClassVar[Site | None] = Site.EMBEDDING
