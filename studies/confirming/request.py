"""What a user asks of a confirmation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from search_space.checked import Name
from search_space.published.point import PublishedPoint
from studies.errors import ConfirmationError

AGAINST = tuple(map(PublishedPoint, ("mam_adapter", "lora_qv", "full_finetuning")))
"""The baselines unless others are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequest:
    """What is to be confirmed.

    Attributes:
        top: How many of its best configurations.
        seeds: How often each is trained.
        against: Published methods, or points such as ``lora_qv:r=8``, to hold them against.
        name: Of the confirmation; None is the study's with ``-confirm``.
        fleet: Keys of the study file's fleet that differ from the study's. Its time budget does not apply.

    Raises:
        ConfirmationError: If there are too few seeds or configurations, or the name cannot be one.
        UnknownMethodError: If there is no method of a name.
    """

    study: str
    top: int = 5
    seeds: int = 5
    against: tuple[PublishedPoint, ...] = AGAINST
    name: str | None = None
    fleet: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what can be checked without the study."""
        if not self.top >= 1 or not self.seeds >= 2:
            raise ConfirmationError(
                "a confirmation must have at least 1 configuration and 2 seeds; "
                f"got {self.top} and {self.seeds}. Ask for more."
            )
        if len(set(self.against)) < len(self.against):
            raise ConfirmationError(f"a baseline must be named once; got {', '.join(self.against)}.")
        object.__setattr__(self, "against", tuple(map(PublishedPoint, self.against)))
        try:
            TypeAdapter(Name).validate_python(self.confirmation)
        except ValidationError:
            raise ConfirmationError(
                "the name of a confirmation must be of lower-case letters, digits, '.', '_' and '-'; "
                f"got {self.confirmation!r}. Choose another."
            ) from None

    @property
    def confirmation(self) -> str:
        """Name of the confirmation."""
        return f"{self.study}-confirm" if self.name is None else self.name
