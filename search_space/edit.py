"""An edit: at these sublayers, read this tensor, compute a form of it, compose it with that tensor."""

from dataclasses import dataclass

from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.forms import Bottleneck, Form, LowRank, SizedForm, SoftmaxMemory
from search_space.gates import Gate
from search_space.layers import AllLayers, Layers
from search_space.validity import check_edit


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One point of the design space, applied at the sublayers of a site.

    Attributes:
        site: Which kind of sublayers.
        write: The tensor that is changed ("modified representation").
        read: The tensor the form is computed of; None for forms that read nothing.
        form: What is computed ("functional form").
        gate: How it joins the tensor that is written ("composition function").
        layers: At which blocks.

    Raises:
        InvalidEditError: If the combination breaks a validity rule; the error names it.
    """

    site: Site
    write: Port
    read: Port | None
    form: Form
    gate: Gate
    layers: Layers = AllLayers()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        """Refuse what breaks a rule."""
        check_edit(self)

    @property
    def insertion(self) -> Insertion:
        """Sequential when the edit reads what it writes (a constant does, trivially), else parallel."""
        return Insertion.SEQUENTIAL if self.read in (None, self.write) else Insertion.PARALLEL

    @property
    def heads(self) -> Heads:
        """In how many blocks the form works."""
        return self.form.heads if isinstance(self.form, SoftmaxMemory | Bottleneck | LowRank) else Heads.SINGLE

    @property
    def sized_form(self) -> SizedForm | None:
        """The form if it has a bottleneck, else None."""
        return self.form if isinstance(self.form, SizedForm) else None
