"""A delta configuration: the list of edits that one trial trains."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from search_space.edit import Edit
from search_space.validity import check_edits


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A point of the design space.

    Attributes:
        edits: Parallel edits of a port are computed from what they read and summed; sequential ones follow in this
            order. None at all leaves the task head alone on the frozen backbone.

    Raises:
        InvalidEditError: If the edits break a validity rule together.
    """

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        """Refuse what breaks a rule."""
        check_edits(self.edits)

    @property
    def attention(self) -> tuple[Edit, ...]:
        """The edits at attention sublayers."""
        return tuple(edit for edit in self.edits if edit.site.is_attention)

    @property
    def ffn(self) -> tuple[Edit, ...]:
        """The edits everywhere else: FFN sublayers, the stack's norms, the embedded input, the whole model."""
        return tuple(edit for edit in self.edits if not edit.site.is_attention)

    def with_widths(self, widths: Mapping[Edit, tuple[int, int]]) -> "Configuration":
        """The same structure with other bottlenecks.

        Args:
            widths: Width, and number of widened sublayers, of every edit; plays no part without a bottleneck.
        """
        return Configuration(
            edits=tuple(
                edit if edit.sized_form is None else replace(edit, form=edit.sized_form.resized(*widths[edit]))
                for edit in self.edits
            )
        )


def edit_structure(edit: Edit) -> Hashable:
    """Equal for edits that can be computed together wherever both act."""
    return edit.site, edit.write, edit.read, edit.form.pack_key(), edit.gate.pack_key()


def structures(configuration: Configuration) -> frozenset[Hashable]:
    """The structures of a configuration's edits; two trials group the better, the more of them they share."""
    return frozenset(edit_structure(edit) for edit in configuration.edits)
