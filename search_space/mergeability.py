"""Mergeability: edits that can be folded into the backbone's weights, so that inference computes nothing extra.

A linear layer computes ``z W + b``. An affine edit of its output, of its input, or in parallel to it gives another
linear layer.
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
"""Ports that only a linear layer reads, to the port that it writes."""


def unmergeable_edits(configuration: Configuration, shape: BackboneShape) -> dict[str, str]:
    """Return the edits that cannot be merged by name, each with the reason; empty if all can be merged."""
    obstacles = (
        (edit_label(index, edit), merge_obstacle(edit, shape)) for index, edit in enumerate(configuration.edits)
    )
    return {name: reason for name, reason in obstacles if reason is not None}


def edit_label(index: int, edit: Edit) -> str:
    """Return the name of an edit in messages."""
    reads = "" if edit.read in (None, edit.write) else f" from {edit.read}"
    return f"edit {index} ({edit.form.name} at {edit.site}{reads} to {edit.write}, gate {edit.gate.name})"


def merge_obstacle(edit: Edit, shape: BackboneShape) -> str | None:
    """Return the reason why an edit cannot be merged into weights; None if it can."""
    form = edit.form
    if form.unmergeable_reason is not None or edit.read is None:
        return form.unmergeable_reason
    if not is_linear(edit):
        return "its map is not the same for every token and head"
    projection = edit.write if edit.write in PROJECTION_OUTPUTS else SOLE_READERS.get(edit.write)
    if projection is None:
        return f"no linear layer alone reads or writes {edit.write}"
    if edit.insertion is Insertion.PARALLEL and not reads_input(edit, shape):
        return f"the layer that writes {edit.write} does not read {edit.read}"
    site = Site.ATTENTION if edit.site.is_attention else edit.site
    if form.bias and (site, projection) not in shape.biased_ports:
        return f"its bias needs one in the layer that writes {projection}"
    return None


def is_linear(edit: Edit) -> bool:
    """Return whether an edit's contribution is a linear map of its input, or a constant."""
    return edit.form.unmergeable_reason is None and edit.heads is Heads.SINGLE and edit.gate.is_linear


def reads_input(edit: Edit, shape: BackboneShape) -> bool:
    """Return whether an edit reads the input of the linear layer that writes its port."""
    read = canonical_read(edit.read, shape)
    return read is not None and read is PROJECTION_INPUTS.get(edit.write)
