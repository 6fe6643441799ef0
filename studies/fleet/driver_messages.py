"""What the launching process and the driver of its Ray say to one another: plain values."""

from dataclasses import dataclass
from pathlib import Path

from studies.errors import StudiesError
from studies.fleet.backend import FleetOptions, RunnerFactory
from studies.fleet.trial_files import FolderMark
from studies.keeping.plan import StudyPlan
from studies.keeping.progress import Progress, Standing

ORDER = "order"
"""The file in the launch's folder that holds the driver's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the driver is to run, and where.

    Attributes:
        cores: Of this machine, for this launch.
        asked_threads: The most threads that the user lets a worker compute with; None if they do not say.
        address: Of a Ray that runs already; None for one of the launch's own.
        folder: Lives as long as the launch, and only its user can enter it.
        mark: Tells a worker on another node whether it sees the study's folder; None without other nodes.
    """

    plan: StudyPlan
    factory: RunnerFactory
    options: FleetOptions
    cores: int
    asked_threads: int | None
    address: str | None
    folder: Path
    mark: FolderMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """To the driver: send the workers away.

    Attributes:
        reason: Why; for the user.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """From the driver: Ray runs.

    Attributes:
        processes: Those of this machine without which it does not, by name; none of a Ray that ran already.
    """

    processes: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """From the driver, several times a second: it lives.

    Attributes:
        progress: Of the study; None before anything is known of it.
        waits_for: See `Progress.waits_for`.
    """

    progress: Progress | None
    waits_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """From the driver: the fleet has come to its end.

    Attributes:
        standing: Where the study stands; None after an error.
        error: What ended it; None without one.
    """

    standing: Standing | None = None
    error: StudiesError | None = None


Said = Started | Shown | Ended


def not_taken_in(address: str) -> str:
    """What is said of a cluster that this machine cannot work with, as half a sentence."""
    return (
        f"the cluster at {address} did not take this machine in (it must be one of its nodes, by 'ray start', and have "
        "its token, by RAY_AUTH_TOKEN_PATH)"
    )
