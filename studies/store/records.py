"""What leaves and enters the store: frozen records."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Self

from search_space.configuration import Configuration
from search_space.words.dimensions import SideDimensions
from studies.errors import StudiesError
from trial_runner.backbones import BackboneSource
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading


class TrialState(StrEnum):
    """Where a trial stands. Complete, pruned and failed are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    PRUNED = "pruned"
    FAILED = "failed"

    @property
    def is_terminal(self) -> bool:
        """Whether the trial can no longer change."""
        return self in (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED)


class StudyKind(StrEnum):
    """What a study is for: to search, or to confirm what another study has found."""

    SEARCH = "search"
    CONFIRMATION = "confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteDimensions(SideDimensions):
    """The design dimensions of the edits at one kind of sublayer, and how fast they learn.

    Attributes:
        learning_rate: Peak learning rate of these edits.
    """

    learning_rate: float


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

    @property
    def source(self) -> BackboneSource:
        """The backbone, and how its weights are held.

        Raises:
            StudiesError: If a later release holds weights in another way.
        """
        stored = self.specification.get("backbone")
        held = stored if isinstance(stored, Mapping) else {}
        try:
            return BackboneSource(**{**held, "name": self.backbone})
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
        validation_score: What that trial scored in the search.
        is_top: Whether it is one of the best configurations of the study.
        baselines: The baselines that it is, as they were asked for; usually one or none.
        change: Of a path from a published method to a trial, what it has changed of the next contender; else None.
    """

    label: str
    trial: int | None
    validation_score: float | None
    is_top: bool
    baselines: tuple[str, ...]
    change: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTrial:
    """A trial to be recorded before it is run.

    Attributes:
        number: 0, 1, 2, … in its study.
        origin: ``"published"``, ``"proposed"``, or ``"replicate"`` of another trial, with another seed.
        method: Name of the published method that was resized; None for proposals.
        fingerprint: Of configuration and learning rates, of a replicate and in a confirmation also of the seed; unique
            in the study.
        description: One phrase for people.
        proposal: Optuna parameter name to value, for the replay.
        seed: Of the training.
        attention: Dimensions at the attention sublayers; None without edits there.
        ffn: Dimensions at the FFN sublayers; None without edits there.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        stored_parameters: Trainable parameters that must be kept.
        trained_parameters: Trainable parameters during training.
        head_parameters: Parameters of the task head, outside the budget.
        replicate_of: Number of the trial that it repeats; given exactly for replicates.
        extra_flops: FLOPs per token that it adds at inference, see `search_space.counting.flops`; None of trials that
            were recorded before that was kept.
    """

    number: int
    origin: str
    method: str | None
    fingerprint: str
    description: str
    configuration: Configuration
    proposal: Mapping[str, object]
    seed: int
    attention: SiteDimensions | None
    ffn: SiteDimensions | None
    attention_share: float
    stored_parameters: int
    trained_parameters: int
    head_parameters: int
    replicate_of: int | None = None
    extra_flops: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord(NewTrial):
    """A trial of the storage.

    Attributes:
        study_id: Key of its study.
        state: Where it stands.
        score: Final score; set exactly when complete.
        steps: Optimiser steps of its newest reading; 0 without one.
        last_score: Score of its newest reading.
        reason: Why it was pruned or failed.
        attempt: Number of its newest attempt; 0 when never leased.
        created_at: UTC.
        ended_at: UTC; set exactly when terminal.
    """

    study_id: int
    state: TrialState
    score: float | None
    steps: int
    last_score: float | None
    reason: str | None
    attempt: int
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One execution of a trial.

    Attributes:
        trial: Number of the trial.
        attempt: 1, 2, 3, … in its trial.
        worker: Who runs it.
        lease_expires_at: When it is taken back unless renewed, UTC.
        started_at: UTC.
        ended_at: UTC; None while it runs.
        ending: ``complete``, ``pruned``, ``failed`` or ``lost``; None while it runs.
    """

    trial: int
    attempt: int
    worker: str
    lease_expires_at: datetime
    started_at: datetime
    ended_at: datetime | None
    ending: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingRecord(Reading):
    """A reading of the storage; one per trial and step.

    Attributes:
        attempt: Attempt that measured it first.
        rung: Index of the rung that the step belongs to; None between rungs.
        heard_at: When the keeper was told of it, UTC; None before it was recorded, and of readings of version 3 or
            earlier of the database.
    """

    attempt: int
    rung: int | None
    heard_at: datetime | None = field(default=None, compare=False)

    @classmethod
    def of(cls, reading: Reading, *, attempt: int, rung: int | None) -> Self:
        """A reading of a pack, as it is recorded."""
        return cls(
            trial=reading.trial,
            step=reading.step,
            score=reading.score,
            metrics=dict(reading.metrics),
            train_loss=reading.train_loss,
            seconds=reading.seconds,
            attempt=attempt,
            rung=rung,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRecord(ExampleLosses):
    """What a reading measured example by example. Large, so it is read only when it is asked for.

    Attributes:
        trial: Number of the trial.
        step: Of the reading.
    """

    trial: int
    step: int

    @classmethod
    def of_reading(cls, examples: ExampleLosses, reading: Reading) -> Self:
        """What was measured example by example of a reading."""
        return cls(trial=reading.trial, step=reading.step, losses=examples.losses, correct=examples.correct)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCounts:
    """How many examples the scores of a study are of.

    Attributes:
        whole: After the last step.
        rungs: Before it.
    """

    whole: int
    rungs: int

    def of(self, state: TrialState) -> int:
        """Of the newest score of a trial in a state."""
        return self.whole if state is TrialState.COMPLETE else self.rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactRecord:
    """A file that belongs to a trial.

    Attributes:
        trial: Number of the trial.
        kind: ``"snapshot"`` (to continue) or ``"delta"`` (the trained result).
        step: Optimiser steps done.
        path: Where it is, as a string.
        sha256: Of its bytes, hex.
        size_bytes: Its length.
    """

    trial: int
    kind: str
    step: int
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a trial ends.

    Attributes:
        state: ``complete``, ``pruned`` or ``failed``.
        score: Final score, finite; given exactly when complete.
        reason: Given exactly when pruned or failed.

    Raises:
        StudiesError: If state, score and reason do not fit together.
    """

    state: TrialState
    score: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check that the three fit."""
        if not self.state.is_terminal:
            raise StudiesError(f"a trial ends complete, pruned or failed; got {self.state}.")
        if (self.state is TrialState.COMPLETE) != (self.score is not None):
            raise StudiesError(f"a score belongs to a complete trial and to no other; got {self.state}, {self.score}.")
        if self.score is not None and not math.isfinite(self.score):
            raise StudiesError(f"a final score must be finite; got {self.score}. End the trial as failed.")
        if (self.state is TrialState.COMPLETE) != (self.reason is None):
            raise StudiesError(f"a reason belongs to a pruned or failed trial; got {self.state}, {self.reason!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The trials of a study in a few numbers.

    Attributes:
        counts: How many are in each state, zeros included.
        best: The highest final score; None before a trial is complete.
        ended_at: When the last one ended; None before one has.
    """

    counts: Mapping[TrialState, int]
    best: float | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of an attempt's report. True exactly when it was accepted.

    Attributes:
        accepted: False when the attempt is no longer the running one; then nothing was written.
        dropped_paths: Files whose rows are gone for good; the caller deletes them now, after the commit.
    """

    accepted: bool
    dropped_paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether it was accepted."""
        return self.accepted


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
    HARNESS = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """Something worth knowing later: a keeper that took over, a worker that was lost, a launch that ended.

    Attributes:
        at: UTC.
        kind: One of `EventKind`, or a word of another release.
        trial: Number of the trial it is about; None for the whole study.
        text: One line.
    """

    at: datetime
    kind: str
    trial: int | None
    text: str
