"""What a study, a confirmation and an event are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from studies.errors import StudiesError
from trial_runner.backbones import BackboneSource


class StudyKind(StrEnum):
    """What a study is for: to search, or to confirm what another study has found."""

    SEARCH = "search"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy:
    """A study to be created.

    Attributes:
        name: Unique in the storage.
        specification: The validated study file, JSON-able.
        backbone: Its name or folder as the user gave it.
        backbone_parameters: Parameters of the backbone, the denominator of percentages.
        budget_parameters: Most trainable parameters of a configuration.
        metric: What is maximised.
        seed: Everything random derives from it.
        kind: What it is for.
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
        """A section of the study file; empty where it has none, or where that is no mapping."""
        said = self.specification.get(key)
        return said if isinstance(said, Mapping) else {}

    @property
    def source(self) -> BackboneSource:
        """The backbone, and how its weights are held.

        Raises:
            StudiesError: If a later release holds weights in another way.
        """
        try:
            return BackboneSource(**{**self.section("backbone"), "name": self.backbone})
        except ValueError as error:
            raise StudiesError(
                f"the weights of the backbone of '{self.name}' must be held in a way that this release knows; it does "
                "not. Use the release that wrote it."
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRecord(NewStudy):
    """A study of the storage.

    Attributes:
        id: Key.
        epoch: Number of the keeper that may write; 0 before the first.
        created_at: UTC.
        folder: Where its files lie, absolute; None before its first launch.
    """

    id: int
    epoch: int
    created_at: datetime
    folder: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A configuration, with its learning rates, that is trained again.

    Attributes:
        label: Unique in the confirmation: the published method, else ``trial 17``.
        trial: Number of the trial of the study that it repeats; None for a baseline that the study has not completed.
        validation_score: What that trial scored in the search, the mean over its seeds.
        is_top: Whether it is one of the best configurations of the study.
        baselines: The baselines that it is, as they were asked for; usually one or none.
        change: Of a path from a published method to a trial, what it has changed of the next contender; else None.
        comparison: Once all trials have ended, the winner minus this baseline, or this step of a path minus the one
            before: as `studies.confirmation.verdicts.Comparison.entry` has it. Else None.
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
    """What the ledger holds of a confirmation beside its trials: what was asked for, and who its contenders are.

    Attributes:
        study: Name of the study that is confirmed.
        top: How many of its best configurations were asked for.
        against: The baselines that were asked for.
        seeds: Every contender is trained with each of them. The trials of a contender stand together, in this order.
        contenders: The best configurations, best first, then the other baselines; or a path that ends at a trial,
            backwards: the trial first, the published method last.
        left_out: By name of a baseline why it is not among them.
        most_parameters: Stored parameters that the best configurations may have; None for any number.
    """

    study: str
    top: int
    against: tuple[str, ...]
    seeds: tuple[int, ...]
    contenders: tuple[Contender, ...]
    left_out: Mapping[str, str]
    most_parameters: int | None = None

    @property
    def asked(self) -> dict[str, object]:
        """What was asked for; a confirmation is continued with the same."""
        if self.is_path:
            return {"trial": self.winner.trial, "seeds": len(self.seeds), "against": list(self.against)}
        size = {} if self.most_parameters is None else {"size": self.most_parameters}
        return {"top": self.top, "seeds": len(self.seeds), "against": list(self.against), **size}

    @property
    def is_path(self) -> bool:
        """Whether it trains what lies between a published method and a trial."""
        return self.winner.change is not None

    @property
    def winner(self) -> Contender:
        """The best configuration of the study, or the trial at the end of a path."""
        return self.contenders[0]

    def numbers_of(self, contender: int) -> range:
        """Numbers of the trials of a contender, one per seed."""
        return range(contender * len(self.seeds), (contender + 1) * len(self.seeds))


class EventKind(StrEnum):
    """What an event is about."""

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
    """Something worth knowing later: a keeper that took over, a worker that was lost, a launch that ended.

    Attributes:
        at: UTC.
        kind: One of `EventKind`, or a word of another release.
        trial: Number of the trial it is about; None for the whole study.
        text: One line; of a note any.
    """

    at: datetime
    kind: str
    trial: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """What people have said of a trial, or of a study: the newest events of some kinds.

    Attributes:
        note: Free text.
        tags: Words to find it by.
        is_to_stop: Whether it was asked to stop; that stays so when it has.
    """

    note: str = ""
    tags: tuple[str, ...] = ()
    is_to_stop: bool = False

    def after(self, event: EventRecord) -> "Annotation":
        """What it is once something more was said."""
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
    """What events, oldest first, say of trials by their numbers, and of the study by None."""
    found: dict[int | None, Annotation] = {}
    for event in events:
        found[event.trial] = found.get(event.trial, Annotation()).after(event)
    return found
