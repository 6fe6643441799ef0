"""A delta configuration: the list of edits that one trial trains."""

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

    def resized(self, *, attention: tuple[int, int], ffn: tuple[int, int]) -> "Configuration":
        """The same structure with other bottlenecks.

        Args:
            attention: Width, and number of widened sublayers, of every sized form at attention.
            ffn: The same at the FFN.
        """
        edits = []
        for edit in self.edits:
            if edit.sized_form is None:
                edits.append(edit)
                continue
            width, widened = attention if edit.site.is_attention else ffn
            edits.append(replace(edit, form=edit.sized_form.resized(width, widened)))
        return Configuration(edits=tuple(edits))
