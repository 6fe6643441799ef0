"""Which edits a pack can compute together: those that differ in nothing but their widths and fixed scales."""

from collections.abc import Hashable

from search_space.configuration import Configuration
from search_space.edit import Edit


def edit_structure(edit: Edit) -> Hashable:
    """Equal for edits that can be computed together wherever both act."""
    return edit.site, edit.write, edit.read, edit.form.stacked(), edit.gate.stacked()


def structures(configuration: Configuration) -> frozenset[Hashable]:
    """The structures of a configuration's edits; two trials group the better, the more of them they share."""
    return frozenset(edit_structure(edit) for edit in configuration.edits)
