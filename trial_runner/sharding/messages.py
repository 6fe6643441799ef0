"""What the owner of ranks and the ranks say to each other. No torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from search_space.errors import SearchSpaceError
from trial_runner.errors import RunnerError

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

    from trial_runner.runner import TorchRunner


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a backbone is shared out.

    Attributes:
        ranks: Among so many processes, on GPUs of their own where there are any.
        threads: Compute threads of each.
        patience_seconds: So long one waits for the others at most, if one of them hangs; of one that ends the owner
            hears at once.
    """

    ranks: int
    threads: int = 1
    patience_seconds: float = 600.0


class RankFactory(Protocol):
    """Makes the runner of a rank. Travels between processes."""

    def __call__(self, *, threads: int, mesh: "DeviceMesh") -> "TorchRunner":
        """A runner of which only a part of the blocks is here.

        Raises:
            RunnerError: If backbone or task cannot be had.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOrder:
    """What a rank is.

    Attributes:
        rank: Its number.
        meeting: A file of this machine through which they find each other.
    """

    factory: RankFactory
    shape: Shape
    rank: int
    meeting: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAnswer:
    """What a rank says when it has done what it was asked for.

    Attributes:
        value: What came of it.
        free_slots: Of its pack then.
        refusal: Why nothing came of it; it goes on all the same.
        trouble: Why it cannot go on, in a line; it has ended.
    """

    value: Any = None
    free_slots: int = 0
    refusal: RunnerError | SearchSpaceError | None = None
    trouble: str = ""
