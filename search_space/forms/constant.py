"""Constant: a trained vector, which is BitFit."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant(Form):
    """A trained vector (D_out) that starts at zero: the change of a bias (BitFit). Reads nothing."""

    name: ClassVar[str] = "const"
