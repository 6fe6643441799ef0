"""The fleet as Ray Tune sees it: a place for every worker that the cluster can hold, now and later."""

import re
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray import tune
from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.search import Searcher
from ray.tune.search.search_generator import SearchGenerator

from studies.backends.placement import Nodes, Share
from studies.backends.tune_worker import MOVES
from studies.errors import LaunchError, said_line

_MOST_FAILURES = 5
_WANT_OF_MEMORY = re.compile(r"node running low on memory.*?IP: ([^,)]+).*? was ([^(]+?) \(")


class Growth(Searcher):  # type: ignore[misc]
    """How many workers there are to be: as many as were asked for, else as many as the nodes hold at the moment.

    It gives places to workers until the first worker has nothing left to do.

    Attributes:
        share: What each is given.
        is_over: Whether a worker has nothing left to do.
    """

    def __init__(self, share: Share, workers: int | None) -> None:
        """Begin with no worker."""
        super().__init__()
        self.share = share
        self.is_over = False
        self._workers = workers
        self._nodes = Nodes()
        self._given = self._left = 0

    @property
    def wanted(self) -> int:
        """Workers in all; at least one, so that a cluster that grows by what is asked for has something to go by."""
        return self._workers or max(1, self.share.room(self._nodes.staying))

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """A place, where one more worker is wanted."""
        if self._given - self._left >= self.wanted:
            return None
        self._given += 1
        return {"place": f"worker-{self._given - 1}"}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """A worker has left."""
        self._left += 1
        self.is_over = self.is_over or not (result or {}).get(MOVES)


class Places(SearchGenerator):  # type: ignore[misc]
    """The same as Ray Tune asks it, again and again; nothing of it is kept, for no launch is restored."""

    def is_finished(self) -> bool:
        """Whether the fleet has come to its end."""
        return bool(self.searcher.is_over)

    def has_checkpoint(self, dirpath: str) -> bool:
        """Nothing was saved."""
        return False

    def save_to_dir(self, dirpath: str, session_str: str) -> None:
        """Save nothing."""


class Failures(tune.Callback):  # type: ignore[misc]
    """Counts how often the process of a place has ended before its worker was met by the keeper.

    Tune counts in its thread, the driver looks in another, and Tune wants to pickle it: it holds no lock.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._counts: Counter[str] = Counter()
        self._met: dict[str, str] = {}
        self._hungry: deque[tuple[str, str]] = deque()
        self._last = ""

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker's process has ended, and Tune is about to start another."""
        place = trial.config["place"]
        with suppress(OSError):
            # Tune writes one error below another; what it keeps elsewhere is not there yet
            self._last = Path(trial.error_file).read_text(errors="replace").rpartition("Failure # ")[2]
        self._counts[place] += 1
        if found := _WANT_OF_MEMORY.search(self._last):
            self._hungry.append((place, f"ended for want of memory: {found[1]} had {found[2]}"))

    def hungry(self) -> Iterator[tuple[str, str]]:
        """The places whose process was ended since for want of memory, and how that is said."""
        with suppress(IndexError):
            while True:
                yield self._hungry.popleft()

    def check(self, crew: Collection[str]) -> None:
        """Forget the failures of places whose worker was met since.

        Args:
            crew: The workers that the keeper knows.

        Raises:
            LaunchError: If those of a place are too many.
        """
        for worker in crew:
            place = worker.partition("/")[0]
            if self._met.get(place) != worker:
                self._met[place] = worker
                self._counts[place] = 0
        place, most = max(self._counts.copy().items(), key=lambda item: item[1], default=("", 0))
        if most >= _MOST_FAILURES:
            said = said_line(self._last, "it did not say why", place=-1)
            raise LaunchError(
                f"workers must be able to begin; {place} ended {most} times before it did: {said}. "
                "Every machine of the cluster needs deltaspace, of one version."
            )


def heed_want_of_memory() -> None:
    """Have Tune take a worker that Ray has ended for want of memory as one that has ended.

    Ray says it with an error that Tune does not know (2.60), and would end all workers for.
    """
    heed = RayActorManager._actor_task_failed

    def heed_all(manager: Any, tracked_actor_task: Any, exception: Exception) -> None:  # Ray gives them by name
        if isinstance(exception, OutOfMemoryError):
            exception = RayActorError(error_msg=str(exception))
        heed(manager, tracked_actor_task=tracked_actor_task, exception=exception)

    RayActorManager._actor_task_failed = heed_all
