"""Records of trials and their attempts."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from search_space.configuration import Configuration
from search_space.words.dimensions import SideDimensions


class TrialState(StrEnum):
    """State of a trial. Complete, pruned and failed are terminal."""

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
    """Trial as proposed, and then as recorded.

    Fields with a default are set by the ledger; values of a proposal are ignored.

    Attributes:
        number: Number 0, 1, 2, … in its study.
        origin: ``"published"``, ``"proposed"``, or ``"replicate"`` of another trial with another seed.
        method: Name of the published method that was resized; None for proposals.
        fingerprint: Fingerprint of configuration and learning rates, and of the seed for replicates and confirmations;
            unique in the study.
        description: Short description.
        proposal: Values of the Optuna parameters by name, for the replay.
        seed: Seed of the training.
        attention: Dimensions at the attention sublayers; None without edits there.
        ffn: Dimensions at the FFN sublayers; None without edits there.
        attention_share: Share of the stored parameters at attention, in [0, 1].
        stored_parameters: Trainable parameters that must be stored.
        trained_parameters: Trainable parameters during training.
        head_parameters: Parameters of the task head, outside the budget.
        replicate_of: Number of the trial that it repeats; given exactly for replicates.
        extra_flops: Extra FLOPs per token at inference, by `search_space.parameter_counts.flops`; None if not recorded.
        study_id: Key of its study.
        state: State of the trial.
        score: Final score; set exactly when complete.
        steps: Optimizer steps of its newest reading; 0 without one.
        last_score: Score of its newest reading.
        reason: Reason why it was pruned or failed.
        attempt: Number of its newest attempt; 0 if never leased.
        created_at: Time of creation in UTC.
        ended_at: Time of the end in UTC; set exactly when terminal.
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

    @property
    def attention_learning_rate(self) -> float | None:
        """Peak learning rate at attention; None without edits there."""
        return None if self.attention is None else self.attention.learning_rate

    @property
    def ffn_learning_rate(self) -> float | None:
        """Peak learning rate at the FFN; None without edits there."""
        return None if self.ffn is None else self.ffn.learning_rate

    @property
    def forms(self) -> tuple[str | None, str | None]:
        """Forms of the first edits at attention and at the FFN, which own the learning rates; None without edits."""
        sides = (self.configuration.attention, self.configuration.ffn)
        attention, ffn = (edits[0].form.name if edits else None for edits in sides)
        return attention, ffn

    def again(self, **changes: Any) -> "TrialRecord":
        """Return the proposal with some changes, as a trial that is not recorded yet."""
        return TrialRecord(**{name: getattr(self, name) for name in PROPOSED} | changes)


PROPOSED = tuple(one.name for one in fields(TrialRecord) if one.default is MISSING)
"""Fields that a proposal sets and that never change; the ledger sets the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutline:
    """Trial of the storage without its configuration and proposal; see `TrialRecord`."""

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
        """Return the outline of a trial."""
        return cls(**{each.name: getattr(trial, each.name) for each in fields(cls)})


RankedTrial = TrialRecord | TrialOutline
"""Trial with the fields that decide its rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One execution of a trial.

    Attributes:
        trial: Number of the trial.
        attempt: Number 1, 2, 3, … in its trial.
        worker: Name of its worker.
        lease_expires_at: Time in UTC at which it is reclaimed unless renewed.
        started_at: Time of the start in UTC.
        ended_at: Time of the end in UTC; None while it runs.
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
    """Summary of the trials of a study.

    Attributes:
        counts: Number of trials in each state, zeros included.
        best: Highest final score, the mean over its seeds; None before a trial is complete.
        ended_at: Time of the last end; None before one.
    """

    counts: Mapping[TrialState, int]
    best: float | None
    ended_at: datetime | None
