"""What a trial is, and how it is executed."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from search_space.configuration import Configuration
from search_space.words.dimensions import SideDimensions


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRecord:
    """A trial, as it is proposed and then as the ledger has it.

    What has a default is the ledger's to decide: whatever a proposal says of it, none of that is recorded.

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
        extra_flops: FLOPs per token that it adds at inference, by `search_space.parameter_counts.flops`; None where
            none was recorded.
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

    number: int
    origin: str
    method: str | None
    fingerprint: str
    description: str
    configuration: Configuration
    proposal: Mapping[str, object]
    seed: int
    attention: SideDimensions | None
    ffn: SideDimensions | None
    attention_share: float
    stored_parameters: int
    trained_parameters: int
    head_parameters: int
    replicate_of: int | None
    extra_flops: int | None
    study_id: int | None = field(default=None, compare=False)
    state: TrialState = TrialState.QUEUED
    score: float | None = None
    steps: int = 0
    last_score: float | None = None
    reason: str | None = None
    attempt: int = 0
    created_at: datetime | None = None
    ended_at: datetime | None = None

    def again(self, **changes: Any) -> "TrialRecord":
        """What was proposed, with some of it changed, as a trial that has yet to be recorded."""
        return TrialRecord(**{name: getattr(self, name) for name in PROPOSED} | changes)


PROPOSED = tuple(one.name for one in fields(TrialRecord) if one.default is MISSING)
"""Fields of a trial that are proposed, and never change; the others are the ledger's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutline:
    """A trial of the storage without its configuration and how it was proposed, see `TrialRecord`."""

    number: int
    state: TrialState
    method: str | None
    replicate_of: int | None
    score: float | None
    steps: int
    last_score: float | None
    reason: str | None
    stored_parameters: int
    extra_flops: int | None
    origin: str
    description: str
    attempt: int
    attention_share: float
    ended_at: datetime | None
    attention: SideDimensions | None
    ffn: SideDimensions | None

    @classmethod
    def of(cls, trial: TrialRecord) -> Self:
        """What of a trial is kept."""
        return cls(**{each.name: getattr(trial, each.name) for each in fields(cls)})


RankedTrial = TrialRecord | TrialOutline
"""What of a trial says how it stands among the others."""


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
class TrialTally:
    """The trials of a study in a few numbers.

    Attributes:
        counts: How many are in each state, zeros included.
        best: The highest final score, the mean over its seeds; None before a trial is complete.
        ended_at: When the last one ended; None before one has.
    """

    counts: Mapping[TrialState, int]
    best: float | None
    ended_at: datetime | None
