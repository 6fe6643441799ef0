"""What is reported of a running trial: measurements example by example, files, and how it ends."""

import math
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.records.trial import TrialState
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRecord(ExampleLosses):
    """What a reading measured example by example. Large, so it is read only when it is asked for.

    Attributes:
        trial: Number of the trial.
        step: Of the reading.
    """

    trial: int
    step: int


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
class TrialReport:
    """What has happened to a running trial since the last report: its worker begins it, the keeper decides of its end.

    Attributes:
        trial: Number of the trial.
        attempt: The attempt that speaks.
        reading: A new measurement; None without one.
        artefact: The file that holds the trial's state at the reading, flushed to disk; None without one.
        state: Where the trial stands with it; running while it goes on.
        score: Final score, finite; given exactly when complete.
        reason: Given exactly when pruned or failed.

    Raises:
        StudiesError: If state, score and reason do not fit together.
        ValueError: If the reading or the file belongs to another trial or attempt.
    """

    trial: int
    attempt: int
    reading: Reading | None = None
    artefact: ArtefactRecord | None = None
    state: TrialState = TrialState.RUNNING
    score: float | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Check that the end fits, and that everything is about the same attempt."""
        is_complete, is_cut = self.state is TrialState.COMPLETE, self.state in (TrialState.PRUNED, TrialState.FAILED)
        if self.state is TrialState.QUEUED:
            raise StudiesError(f"a trial goes on running, or ends complete, pruned or failed; got {self.state}.")
        if is_complete != (self.score is not None):
            raise StudiesError(f"a score belongs to a complete trial and to no other; got {self.state}, {self.score}.")
        if self.score is not None and not math.isfinite(self.score):
            raise StudiesError(f"a final score must be finite; got {self.score}. End the trial as failed.")
        if is_cut != (self.reason is not None):
            raise StudiesError(f"a reason belongs to a pruned or failed trial; got {self.state}, {self.reason!r}.")
        owners = set() if self.reading is None else {(self.reading.trial, self.reading.attempt)}
        if self.artefact is not None:
            owners.add((self.artefact.trial, self.attempt))
        if owners - {(self.trial, self.attempt)}:
            raise ValueError(f"a report of trial {self.trial}, attempt {self.attempt} must not speak of {owners}.")
