"""What every gate answers (He et al. 2022, "composition function"): how an edit's output joins the tensor it writes."""

from dataclasses import Field
from typing import Any, ClassVar


class Gate:
    """How an edit's output joins the tensor it writes: a frozen dataclass, and what the rest asks of it.

    Attributes:
        name: As stored, and in study files.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    name: ClassVar[str]
