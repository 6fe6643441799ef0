"""The table of ports that was made of a backbone of no family: a study goes on with the one that it was begun with."""

from importlib.metadata import version

from pydantic.dataclasses import dataclass

from search_space.backbones import family_of_shape
from search_space.backbones.declared import declared_of, table_sha256
from search_space.backbones.shape import BackboneShape
from studies.errors import StudyChangedError

_TRANSFORMERS = "transformers"


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTable:
    """Which table it is.

    Attributes:
        sha256: Of its ports and sizes.
        transformers: The release that gave the model it was made of.
    """

    sha256: str
    transformers: str

    @classmethod
    def of(cls, shape: BackboneShape) -> "MadeTable | None":
        """That of a backbone; None where its family has a table of its own."""
        return None if declared_of(shape) is None else cls(sha256=_sha256(shape), transformers=version(_TRANSFORMERS))

    def check(self, shape: BackboneShape, study: str) -> None:
        """See that a backbone has it still.

        Raises:
            StudyChangedError: If its edits would be at other places now.
        """
        if _sha256(shape) != self.sha256:
            raise StudyChangedError(
                f"study '{study}' must keep the table of ports that was made of its {shape.family} backbone when it "
                f"was begun, with transformers {self.transformers}; {version(_TRANSFORMERS)} gives another. Install "
                "that release, or begin another study."
            )


def _sha256(shape: BackboneShape) -> str:
    return table_sha256(shape, family_of_shape(shape).ports(shape))
