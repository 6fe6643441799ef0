"""Which edits a pack can compute together: those that differ in nothing but their widths and fixed scales."""

from collections.abc import Hashable
from dataclasses import replace

from search_space.configuration import Configuration
from search_space.edit import Edit
from search_space.forms import Bottleneck, LowRank, SoftmaxMemory
from search_space.gates import FixedScale


def edit_structure(edit: Edit) -> Hashable:
    """Equal for edits that can be computed together wherever both act."""
    form, gate = edit.form, edit.gate
    if isinstance(form, Bottleneck | LowRank | SoftmaxMemory):
        form = replace(form, width=1, widened=0)
    if isinstance(gate, FixedScale):
        gate = replace(gate, value=1.0)
    return edit.site, edit.write, edit.read, form, gate


def structures(configuration: Configuration) -> frozenset[Hashable]:
    """The structures of a configuration's edits; two trials group the better, the more of them they share."""
    return frozenset(edit_structure(edit) for edit in configuration.edits)
