"""Records of studies, confirmations and events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, FailFast, TypeAdapter, ValidationError

from search_space.field_types import Name
from studies.errors import StudiesError
from trial_runner.backbones import BackboneSource


class StudyKind(StrEnum):
    """Purpose of a study: a search, or a confirmation of another study's result."""

    SEARCH = "search"
    CONFIRMATION = "confirmation"


def check_name(name: str, what: str, error: type[StudiesError]) -> None:
    """Raise an error if a text cannot be the name of a study."""
    try:
        TypeAdapter(Name).validate_python(name)
    except ValidationError:
        raise error(
            f"the name of {what} must be of lower-case letters, digits, '.', '_' and '-'; got {name!r}. Choose another."
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy:
    """Study to be created.

    Attributes:
        name: Name, unique in the storage.
        specification: Validated study file, JSON-able.
        backbone: Name or folder of the backbone as the user gave it.
        backbone_parameters: Number of parameters of the backbone, the denominator of percentages.
        budget_parameters: Largest number of trainable parameters of a configuration.
        metric: Metric that is maximized.
        seed: Seed of everything random.
        kind: Purpose of the study.
        parent_id: Key of the study that it confirms; given exactly for confirmations.
    """

    name: str
    specification: Mapping[str, object]
    backbone: str
    backbone_parameters: int
    budget_parameters: int
    metric: str
    seed: int
    kind: StudyKind = StudyKind.SEARCH
    parent_id: int | None = None

    def section(self, key: str) -> Mapping[str, Any]:
        """Return a section of the study file; empty if it is missing or not a mapping."""
        value = self.specification.get(key)
        return value if isinstance(value, Mapping) else {}

    @property
    def source(self) -> BackboneSource:
        """Backbone with the format of its weights.

        Raises:
            StudiesError: If the format of the weights is of a later release.
        """
        try:
            return BackboneSource(**{**self.section("backbone"), "name": self.backbone})
        except ValueError as error:
            raise StudiesError(
                f"the weights of the backbone of '{self.name}' must have a format of this release; they do "
                "not. Use the release that wrote it."
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord(NewStudy):
    """Study of the storage.

    Attributes:
        id: Key of the study.
        epoch: Number of the keeper that may write; 0 before the first.
        created_at: Time of creation in UTC.
        folder: Absolute folder of its files; None before its first launch.
    """

    id: int
    epoch: int
    created_at: datetime
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Configuration with its learning rates that is trained again.

    Attributes:
        label: Unique label in the confirmation: the published method, else ``trial 17``.
        trial: Number of the trial of the study that it repeats; None for a baseline that the study has not completed.
        validation_score: Score of that trial in the search, the mean over its seeds.
        is_top: Whether it is one of the best configurations of the study.
        baselines: Requested baselines that it equals; usually one or none.
        change: Change from the next contender, on a path from a published method to a trial; else None.
        comparison: Once all trials have ended, the winner minus this baseline, or this step of a path minus the one
            before, as in `studies.confirmation.verdicts.Comparison.entry`; else None.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    label: str
    trial: int | None
    validation_score: float | None
    is_top: bool
    baselines: tuple[str, ...]
    change: str | None = None
    comparison: Mapping[str, int | float | str | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRecord:
    """Confirmation without its trials: its request and its contenders.

    Attributes:
        study: Name of the study that is confirmed.
        top: Requested number of best configurations.
        against: Requested baselines.
        seeds: Seeds with which every contender is trained. Trials of a contender are consecutive, in this order.
        contenders: Best configurations, best first, then the other baselines. Or a path that ends at a trial, in
            reverse: the trial first, the published method last.
        left_out: Reasons why baselines are missing, by name.
        most_parameters: Largest number of stored parameters of the best configurations; None for any.
    """

    study: str
    top: int
    # FailFast: a damaged list of a million entries is reported once
    against: Annotated[tuple[str, ...], FailFast()]
    seeds: Annotated[tuple[int, ...], FailFast()]
    contenders: Annotated[tuple[Contender, ...], FailFast()]
    left_out: Mapping[str, str]
    most_parameters: int | None = None

    @property
    def fixed_arguments(self) -> dict[str, object]:
        """Request, with which a confirmation must be continued."""
        if self.is_path:
            return {"trial": self.winner.trial, "seeds": len(self.seeds), "against": list(self.against)}
        size = {} if self.most_parameters is None else {"size": self.most_parameters}
        return {"top": self.top, "seeds": len(self.seeds), "against": list(self.against), **size}

    @property
    def is_path(self) -> bool:
        """Whether it trains the steps between a published method and a trial."""
        return self.winner.change is not None

    @property
    def winner(self) -> Contender:
        """Best configuration of the study, or the trial at the end of a path."""
        return self.contenders[0]

    def numbers_of(self, contender: int) -> range:
        """Return the trial numbers of a contender, one per seed."""
        return range(contender * len(self.seeds), (contender + 1) * len(self.seeds))


class EventKind(StrEnum):
    """Kind of an event."""

    TAKEOVER = "takeover"
    LOST = "lost"
    CRASH = "crash"
    LAUNCH = "launch"
    EXHAUSTED = "exhausted"
    LEFT_OUT = "left_out"
    UNDELETED = "undeleted"
    MACHINE = "machine"
    NOTE = "note"
    TAGS = "tags"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """Event of a study, such as a takeover, a lost worker, or the end of a launch.

    Attributes:
        at: Time in UTC.
        kind: Member of `EventKind`, or a word of another release.
        trial: Number of its trial; None for the whole study.
        text: One line; notes may have several.
    """

    at: datetime
    kind: str
    trial: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """User annotations of a trial or a study: the newest events of some kinds.

    Attributes:
        note: Free text.
        tags: Tags.
        is_to_stop: Whether its stop was requested; it stays true afterwards.
    """

    note: str = ""
    tags: tuple[str, ...] = ()
    is_to_stop: bool = False

    def after(self, event: EventRecord) -> "Annotation":
        """Return the annotation after an event."""
        match event.kind:
            case EventKind.NOTE:
                return replace(self, note=event.text)
            case EventKind.TAGS:
                return replace(self, tags=tuple(tag for tag in event.text.split(", ") if tag))
            case EventKind.STOP:
                return replace(self, is_to_stop=True)
            case _:
                return self


def annotations_of(events: Iterable[EventRecord]) -> dict[int | None, Annotation]:
    """Return the annotations by trial number, and of the study by None, from events in order."""
    annotations: dict[int | None, Annotation] = {}
    for event in events:
        annotations[event.trial] = annotations.get(event.trial, Annotation()).after(event)
    return annotations
