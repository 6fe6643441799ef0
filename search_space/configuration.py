"""A delta configuration: the edits that one trial trains."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from search_space.edit import Edit
from search_space.validity import check_edits


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A point of the design space.

    Attributes:
        edits: Edits of the configuration. Parallel edits of a port are computed from their inputs and summed;
            sequential ones follow in this order. Empty for the task head alone on the frozen backbone.

    Raises:
        InvalidEditError: If the edits together break a validity rule.
    """

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        """Check the rules between edits."""
        check_edits(self.edits)

    @property
    def attention(self) -> tuple[Edit, ...]:
        """Edits at attention sublayers."""
        return tuple(edit for edit in self.edits if edit.site.is_attention)

    @property
    def ffn(self) -> tuple[Edit, ...]:
        """Edits outside attention: at FFN sublayers, the stack's norms, the embedded input and the whole model."""
        return tuple(edit for edit in self.edits if not edit.site.is_attention)

    def with_widths(self, widths: Mapping[Edit, tuple[int, int]]) -> "Configuration":
        """Return the same structure with other bottlenecks.

        Args:
            widths: Width and number of widened sublayers of every edit; ignored for edits without a bottleneck.
        """
        return Configuration(
            edits=tuple(
                edit if edit.sized_form is None else replace(edit, form=edit.sized_form.resized(*widths[edit]))
                for edit in self.edits
            )
        )


@lru_cache(maxsize=4096)
def edit_structure(edit: Edit) -> Hashable:
    """Return a key that is equal for edits a pack can compute together at a common sublayer."""
    return edit.site, edit.write, edit.read, edit.form.pack_key(), edit.gate.pack_key()


def structures(configuration: Configuration) -> frozenset[Hashable]:
    """Return the structures of a configuration's edits; packs group trials that share many of them."""
    return frozenset(edit_structure(edit) for edit in configuration.edits)
