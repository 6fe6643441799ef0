"""Full: a free change of every weight, which is full fine-tuning."""

from dataclasses import dataclass
from typing import ClassVar

from search_space.forms.form import Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Full(Form):
    """A free change of every weight of the backbone: full fine-tuning. Starts at zero."""

    name: ClassVar[str] = "full"
