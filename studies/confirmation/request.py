"""Requests of confirmations and ablations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from search_space.published.point import PublishedPoint
from studies.analysis.fronts import parameters_of
from studies.analysis.summaries import check_number
from studies.errors import ConfirmationError
from studies.records import StudyRecord
from studies.records.study import check_name

AGAINST = tuple(map(PublishedPoint, ("mam_adapter", "lora_qv", "full_finetuning")))
"""Default baselines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequest:
    """Request of a confirmation.

    Attributes:
        study: Name of the study.
        top: Number of best configurations.
        seeds: Number of trainings of each.
        against: Published methods, or points such as ``lora_qv:r=8``, as baselines.
        name: Name of the confirmation; None for the study's with ``-confirm``, and with the size.
        size: Largest number of stored parameters, or share of the backbone; None for any.
        fleet: Keys of the study file's fleet that differ from the study's. Its time budget does not apply.

    Raises:
        ConfirmationError: If there are too few seeds or configurations, or the name is not valid.
        UnknownMethodError: If there is no method of a name.
    """

    study: str
    top: int = 5
    seeds: int = 5
    against: tuple[PublishedPoint, ...] = AGAINST
    name: str | None = None
    size: str | None = None
    fleet: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything that does not depend on the study."""
        if not self.top >= 1 or not self.seeds >= 2:
            raise ConfirmationError(
                "a confirmation must have at least 1 configuration and 2 seeds; "
                f"got {self.top} and {self.seeds}. Set more."
            )
        if len(set(self.against)) < len(self.against):
            raise ConfirmationError(f"a baseline must be named once; got {', '.join(self.against)}.")
        object.__setattr__(self, "against", tuple(map(PublishedPoint, self.against)))
        check_name(self.confirmation, "a confirmation", ConfirmationError)

    @property
    def confirmation(self) -> str:
        """Name of the confirmation."""
        if self.name is not None:
            return self.name
        within = "" if self.size is None else "-within-" + re.sub(r"[\s,_]", "", self.size).replace("%", "-percent")
        return f"{self.study}-confirm{within}"

    def most_parameters(self, study: StudyRecord) -> int | None:
        """Return the size as a number of parameters.

        Raises:
            BudgetError: If it cannot be parsed.
        """
        return None if self.size is None else parameters_of(self.size, study)

    def fixed_arguments(self, study: StudyRecord) -> dict[str, object]:
        """Return the arguments with which it must be continued.

        Raises:
            BudgetError: If the size cannot be parsed.
        """
        most = self.most_parameters(study)
        size = {} if most is None else {"size": most}
        return {"top": self.top, "seeds": self.seeds, "against": list(self.against), **size}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRequest:
    """Request of an ablation.

    Attributes:
        study: Name of the study.
        top: Trial at the end of the path.
        trial: Number of the trial at the end of the path; ``best`` for the study's, or the one of a continued ablation.
        against: Published method, or point, at the begin of the path; None for the study's best by estimate, or the
            one of a continued ablation.
        seeds: Number of trainings of each step.
        name: Name of the ablation; None for the study's with ``-ablate``.
        fleet: See `ConfirmationRequest`.

    Raises:
        ConfirmationError: If there are too few seeds, or the name is not valid.
        InvalidRequestError: If the trial is another word.
        UnknownMethodError: If there is no such method.
    """

    top: ClassVar[int] = 1
    study: str
    trial: int | Literal["best"] = "best"
    against: PublishedPoint | None = None
    seeds: int = 8
    name: str | None = None
    fleet: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check everything that does not depend on the study."""
        if not self.seeds >= 2:
            raise ConfirmationError(f"an ablation must have at least 2 seeds; got {self.seeds}. Set more.")
        check_number(self.trial)
        if self.against is not None:
            object.__setattr__(self, "against", PublishedPoint(self.against))
        check_name(self.confirmation, "an ablation", ConfirmationError)

    @property
    def confirmation(self) -> str:
        """Name of the ablation."""
        return f"{self.study}-ablate" if self.name is None else self.name

    def most_parameters(self, study: StudyRecord) -> int | None:
        """Return None: a path has the size of its ends."""
        return None

    def fixed_arguments(self, study: StudyRecord) -> dict[str, object]:
        """Return the arguments with which it must be continued; None if any are allowed."""
        trial = None if self.trial == "best" else self.trial
        return {"trial": trial, "seeds": self.seeds, "against": None if self.against is None else [self.against]}


Request = ConfirmationRequest | AblationRequest
"""Request of a training on the test split."""
