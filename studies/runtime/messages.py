"""What workers and the keeper say to one another: plain values. And what it is told of machines."""

from dataclasses import dataclass
from enum import StrEnum

from studies.records import ArtefactRecord
from trial_runner.requests import TrialRequest


class Decision(StrEnum):
    """What becomes of a trial after a report: it goes on, is over, or is no longer this worker's."""

    GO_ON = "go on"
    STOP = "stop"
    ABANDON = "abandon"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerAnswer:
    """The keeper's answer to a worker.

    Attributes:
        decisions: One per report, in their order.
        requests: Attempts at trials that the worker is lent, each until it is over or the lease runs out; at most as
            many as there are free slots once the decisions are carried out.
        snapshots: What earlier attempts at these have left, of each the newest first.
        is_over: Nothing is left to do for this worker, now and later.
    """

    decisions: tuple[Decision, ...] = ()
    requests: tuple[TrialRequest, ...] = ()
    snapshots: tuple[ArtefactRecord, ...] = ()
    is_over: bool = False


class Machines:
    """The machines of a fleet; these are all that of the keeper itself: when it is gone, so is the keeper."""

    def is_gone(self, worker: str) -> bool:
        """Whether the machine of a worker has ended, or is about to: whatever the worker held was not to blame."""
        return False

    def is_leaving(self, worker: str) -> bool:
        """Whether the machine of a worker was told to leave, so that the worker should lay its trials aside."""
        return False


def crash_reason(error: Exception) -> str:
    """What ended a worker, or a call of one, in a line."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
