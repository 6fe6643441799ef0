"""An edit: the sublayers, the tensor read, the form computed from it, and the gate that joins the tensor written."""

from dataclasses import dataclass

from search_space.backbones.shape import BackboneShape
from search_space.dimensions import Heads, Port, Site
from search_space.edit_protocol import EditEndpoints
from search_space.forms import Form, SizedForm
from search_space.gates import Add, Gate
from search_space.layers import AllLayers
from search_space.rules import READABLE_PORTS, rule_error, writable_ports

_OUTSIDE_BLOCKS = (Site.EMBEDDING, Site.GLOBAL, Site.STACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit(EditEndpoints):
    """One point of the design space, applied at the sublayers of a site.

    Attributes:
        site: Kind of sublayers.
        write: Tensor that is changed ("modified representation").
        read: Tensor that the form is computed from; None for forms without input.
        form: Function of the tensor read ("functional form").
        gate: Operation that joins the result with the tensor written ("composition function").
        layers: Blocks at which the edit acts.

    Raises:
        InvalidEditError: If the combination breaks a validity rule; the error names it.
    """

    form: Form
    gate: Gate

    def __post_init__(self) -> None:
        """Check the rules of one edit."""
        self._check_ports()
        self._check_outside_site()
        if self.form.outside_site is not None:
            return
        if self.form.reads:
            self._check_heads()
            self.form.check_heads(self)
            self._check_factor()
            self.gate.check(self)
        self.form.check(self)

    @property
    def sized_form(self) -> SizedForm | None:
        """Form with a bottleneck; None for other forms."""
        return self.form if isinstance(self.form, SizedForm) else None

    def formula(self, shape: BackboneShape) -> str:
        """Return the formula of the edit at a sublayer, with the shapes of its matrices."""
        return self.form.formula(self, shape)

    def _check_ports(self) -> None:
        writes = writable_ports(self.site)
        if self.write not in writes:
            raise rule_error("site", f"write {self.write} at {self.site}", f"Writable there: {', '.join(writes)}.")
        if not self.form.reads:
            if self.read is not None:
                title = self.form.title or self.form.name
                raise rule_error("read", f"a {title} that reads {self.read}", "Leave read empty.")
            return
        allowed = READABLE_PORTS[self.write]
        if self.read not in allowed:
            known = ", ".join(allowed) or "nothing (constants only)"
            got = f"read {self.read or 'nothing'} for write {self.write}"
            raise rule_error("read", got, f"Readable for it: {known}.")

    def _check_outside_site(self) -> None:
        of_input, of_model = (self.form.outside_site is site for site in (Site.EMBEDDING, Site.GLOBAL))
        is_input = self.site is Site.EMBEDDING
        fits = of_input == is_input == (self.gate.outside_site is Site.EMBEDDING)
        if not fits or of_model != (self.site is Site.GLOBAL):
            raise rule_error("V19", f"{self.form.name} at {self.site} with gate {self.gate.name}")
        if of_model and not isinstance(self.gate, Add):
            raise rule_error("V19", f"{self.form.name} with gate {self.gate.name}", "Use add.")
        if self.site in _OUTSIDE_BLOCKS and not isinstance(self.layers, AllLayers):
            raise rule_error("layers", f"layers {self.layers.name} at {self.site}", "Leave them out.")

    def _check_heads(self) -> None:
        is_multi = self.heads is not Heads.SINGLE
        is_extension = self.write is Port.O and self.heads is Heads.QUERY and self.read in (Port.Q, Port.HEAD)
        got = f"{self.heads} at {self.write}, read {self.read}"
        if is_multi and self.write is not Port.HEAD and not is_extension:
            raise rule_error("V10", got, "Use write head, or one block.")
        if not is_multi and Port.HEAD in (self.write, self.read):
            raise rule_error("V10", got, "Use concat for one block.")

    def _check_factor(self) -> None:
        is_factor = self.form.multiplies and self.read is self.write
        if is_factor != self.gate.multiplies:
            raise rule_error("mul", f"{self.form.name} from {self.read} to {self.write} with gate {self.gate.name}")
