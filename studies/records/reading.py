"""Reports of running trials: readings, measurements by example, files, and ends."""

import math
from dataclasses import dataclass

from studies.errors import StudiesError
from studies.records.trial import TrialState
from trial_runner.example_losses import ExampleLosses
from trial_runner.requests import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRecord(ExampleLosses):
    """Measurements of a reading by example; large, so they are read on demand alone.

    Attributes:
        trial: Number of the trial.
        step: Step of the reading.
    """

    trial: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCounts:
    """Numbers of examples of the scores of a study.

    Attributes:
        whole: Number after the last step.
        rungs: Number before the last step.
    """

    whole: int
    rungs: int

    def of(self, state: TrialState) -> int:
        """Return the number of examples of the newest score of a trial in a state."""
        return self.whole if state is TrialState.COMPLETE else self.rungs


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactRecord:
    """File of a trial.

    Attributes:
        trial: Number of the trial.
        kind: ``"snapshot"`` (to continue) or ``"delta"`` (the trained result).
        step: Completed optimizer steps.
        path: Path as a string.
        sha256: SHA-256 of the content, hex.
        size_bytes: Size of the file.
    """

    trial: int
    kind: str
    step: int
    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """Report of a running trial since the last one; its worker creates it, and the keeper decides its end.

    Attributes:
        trial: Number of the trial.
        attempt: Attempt of the report.
        reading: New reading; None without one.
        artefact: File with the trial's state at the reading, flushed to disk; None without one.
        state: State of the trial after the report; running while it continues.
        score: Final score, finite; given exactly when complete.
        reason: Reason of the end; given exactly when pruned or failed.

    Raises:
        StudiesError: If state, score and reason are inconsistent.
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
        """Check that the end is consistent, and that everything belongs to the same attempt."""
        is_complete, is_cut = self.state is TrialState.COMPLETE, self.state in (TrialState.PRUNED, TrialState.FAILED)
        if self.state is TrialState.QUEUED:
            raise StudiesError(f"the state of a report must be running, complete, pruned or failed; got {self.state}.")
        if is_complete != (self.score is not None):
            raise StudiesError(
                f"a final score must be given exactly for complete trials; got {self.state}, {self.score}."
            )
        if self.score is not None and not math.isfinite(self.score):
            raise StudiesError(f"a final score must be finite; got {self.score}. End the trial as failed.")
        if is_cut != (self.reason is not None):
            raise StudiesError(
                f"a reason must be given exactly for pruned and failed trials; got {self.state}, {self.reason!r}."
            )
        owners = set() if self.reading is None else {(self.reading.trial, self.reading.attempt)}
        if self.artefact is not None:
            owners.add((self.artefact.trial, self.attempt))
        if owners - {(self.trial, self.attempt)}:
            raise ValueError(
                f"a report of trial {self.trial}, attempt {self.attempt} must not contain data of {owners}."
            )
