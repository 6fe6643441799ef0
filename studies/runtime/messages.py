"""Messages between workers and the keeper as plain values, and the state of machines."""

from dataclasses import dataclass
from enum import StrEnum

from studies.records import ArtefactRecord
from trial_runner.requests import TrialRequest


class Decision(StrEnum):
    """Decision on a trial after a report: continue, stop, or abandon because the worker no longer holds it."""

    GO_ON = "go on"
    STOP = "stop"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """Answer of the keeper to a worker.

    Attributes:
        decisions: Decision for each report, in their order.
        requests: Attempts leased to the worker; at most as many as it has free slots after the decisions.
        snapshots: Snapshots of earlier attempts at these trials, the newest of each trial first.
        is_over: Whether there will be no more work for this worker.
    """

    decisions: tuple[Decision, ...] = ()
    requests: tuple[TrialRequest, ...] = ()
    snapshots: tuple[ArtefactRecord, ...] = ()
    is_over: bool = False


class Machines:
    """Machines of a fleet. This one is the keeper's own machine, which cannot end before the keeper does."""

    def is_gone(self, worker: str) -> bool:
        """Return whether a worker's machine has ended or is about to, so that its trials are not to blame."""
        return False

    def is_leaving(self, worker: str) -> bool:
        """Return whether a worker's machine will leave, so that the worker should checkpoint its trials."""
        return False


def crash_reason(error: Exception) -> str:
    """Return the error that ended a worker or a call in one line."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
