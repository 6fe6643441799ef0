"""What is measured of a trial beside its readings, and its files."""

from dataclasses import dataclass
from typing import Self

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
