"""What a keeper is told of the machines that its workers are on: the end of a machine speaks against no trial."""

from typing import Protocol


class Machines(Protocol):
    """The machines of a fleet."""

    def is_gone(self, worker: str) -> bool:
        """Whether the machine of a worker has ended, or is about to: whatever the worker held was not to blame."""
        ...

    def is_leaving(self, worker: str) -> bool:
        """Whether the machine of a worker was told to leave, so that the worker should lay its trials aside."""
        ...


class OneMachine:
    """The machine of the keeper itself: when it is gone, so is the keeper."""

    def is_gone(self, worker: str) -> bool:
        """Never."""
        return False

    def is_leaving(self, worker: str) -> bool:
        """Never."""
        return False
