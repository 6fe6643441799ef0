"""What every functional form answers (He et al. 2022, "functional form"): one file of this folder holds one form.

Shapes use `D_in` for the width that is read, `D_out` for the width that is written and `R` for the bottleneck. A
form with several heads holds one such map per head and works on the head's slice.
"""

from dataclasses import Field
from typing import Any, ClassVar

from search_space.dimensions import Heads
from search_space.errors import InvalidEditError


class Form:
    """What an edit computes of the tensor it reads: a frozen dataclass, and what the rest asks of it.

    Attributes:
        name: As stored, and in study files.
        heads: In how many blocks it works.
        widened: How many sublayers, counted from the output, have a width that is one step more.
        reparameterization: Hidden width of the MLP that makes its tables while it is trained; None without.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    name: ClassVar[str]

    heads: Heads = Heads.SINGLE
    widened: int = 0
    reparameterization: int | None = None


class SizedForm(Form):
    """A form with a bottleneck.

    Attributes:
        width: Its bottleneck R. At least 1.
    """

    __slots__ = ()

    width: int

    @property
    def width_step(self) -> int:
        """By how much the width grows at a time."""
        return 1


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, which True is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_size(form: SizedForm) -> None:
    """Refuse a width, or a number of widened sublayers, that cannot be.

    Raises:
        InvalidEditError: If one is out of range.
    """
    if not (is_whole(form.width) and form.width >= 1):
        raise InvalidEditError(
            f"a bottleneck must be a whole number of at least 1; got {form.width!r}. Raise it or drop the edit.",
            rule="width",
        )
    if not (is_whole(form.widened) and form.widened >= 0):
        raise InvalidEditError(
            f"the number of widened sublayers must be a whole number of at least 0; got {form.widened!r}.",
            rule="width",
        )


def check_reparameterization(form: Form) -> None:
    """Refuse a hidden width that cannot be, or one for tables of several lengths.

    Raises:
        InvalidEditError: If it cannot be.
    """
    hidden = form.reparameterization
    if hidden is None:
        return
    if not (is_whole(hidden) and hidden >= 1):
        raise InvalidEditError(
            f"the hidden width of the reparameterization must be a whole number of at least 1; got {hidden!r}.",
            rule="width",
        )
    if form.widened:
        raise InvalidEditError(
            f"a reparameterized table has one length; got {form.widened} widened sublayers.", rule="V17"
        )
