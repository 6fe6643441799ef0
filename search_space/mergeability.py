"""Which edits the weights of a backbone can hold, so that nothing of them is left to compute at inference.

A linear layer computes ``z W + b``. An affine edit of what the layer writes, of what it reads, or in parallel to it
makes another linear layer of it.
"""

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.rules import PROJECTION_INPUTS
from search_space.validity import canonical_read

PROJECTION_OUTPUTS = tuple(PROJECTION_INPUTS)
"""Ports that a linear layer writes."""

SOLE_READERS = {Port.CONCAT: Port.O, Port.M: Port.F}
"""Ports that nothing but a linear layer reads, to the port that it writes."""


def unmergeable_edits(configuration: Configuration, shape: BackboneShape) -> dict[str, str]:
    """The edits that no weights can hold, by name, and why; empty if all can be merged."""
    obstacles = (
        (edit_label(index, edit), merge_obstacle(edit, shape)) for index, edit in enumerate(configuration.edits)
    )
    return {name: why for name, why in obstacles if why is not None}


def edit_label(index: int, edit: Edit) -> str:
    """An edit as messages name it."""
    reads = "" if edit.read in (None, edit.write) else f" from {edit.read}"
    return f"edit {index} ({edit.form.name} at {edit.site}{reads} to {edit.write}, gate {edit.gate.name})"


def merge_obstacle(edit: Edit, shape: BackboneShape) -> str | None:
    """Why no weights can hold an edit; None where they can."""
    form = edit.form
    if form.unmergeable_reason is not None or edit.read is None:
        return form.unmergeable_reason
    if not is_linear(edit):
        return "its map is not the same for every token and head"
    place = edit.write if edit.write in PROJECTION_OUTPUTS else SOLE_READERS.get(edit.write)
    if place is None:
        return f"no linear layer alone reads or writes {edit.write}"
    if edit.insertion is Insertion.PARALLEL and not reads_input(edit, shape):
        return f"the layer that writes {edit.write} does not read {edit.read}"
    site = Site.ATTENTION if edit.site.is_attention else edit.site
    if form.bias and (site, place) not in shape.biased_ports:
        return f"its bias needs one in the layer that writes {place}"
    return None


def is_linear(edit: Edit) -> bool:
    """Whether an edit's contribution is a linear map of what it reads, or a constant."""
    return edit.form.unmergeable_reason is None and edit.heads is Heads.SINGLE and edit.gate.is_linear


def reads_input(edit: Edit, shape: BackboneShape) -> bool:
    """Whether an edit reads what the linear layer reads that writes its port."""
    read = canonical_read(edit.read, shape)
    return read is not None and read is PROJECTION_INPUTS.get(edit.write)
