"""Size of the fleet for Ray Tune: one place per worker that the cluster can hold, now and later."""

import re
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray import tune
from ray.exceptions import OutOfMemoryError, RayActorError
from ray.tune.execution.tune_controller import RayActorManager
from ray.tune.search import Searcher
from ray.tune.search.search_generator import SearchGenerator

from studies.backends.placement import Nodes, Share
from studies.backends.tune_worker import MOVES
from studies.errors import LaunchError, message_line

_MOST_FAILURES = 5
_OUT_OF_MEMORY = re.compile(r"node running low on memory.*?IP: ([^,)]+).*? was ([^(]+?) \(")


class Growth(Searcher):  # type: ignore[misc]
    """Number of workers: as requested, or as many as the nodes hold at the moment.

    Places are given to workers until the first worker has nothing left to do.

    Attributes:
        share: Resources of each worker.
        is_over: Whether a worker has nothing left to do.
    """

    def __init__(self, share: Share, workers: int | None) -> None:
        """Start without workers."""
        super().__init__()
        self.share = share
        self.is_over = False
        self._workers = workers
        self._nodes = Nodes()
        self._given = self._left = 0

    @property
    def wanted(self) -> int:
        """Number of workers, at least one, so that an autoscaling cluster receives a demand."""
        return self._workers or max(1, self.share.room(self._nodes.staying))

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        """Return a place if one more worker is wanted."""
        if self._given - self._left >= self.wanted:
            return None
        self._given += 1
        return {"place": f"worker-{self._given - 1}"}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Count a worker that has left."""
        self._left += 1
        self.is_over = self.is_over or not (result or {}).get(MOVES)


class Places(SearchGenerator):  # type: ignore[misc]
    """Generator of places for Ray Tune; nothing is saved, since no launch is restored by Tune."""

    def is_finished(self) -> bool:
        """Return whether the fleet has ended."""
        return bool(self.searcher.is_over)

    def has_checkpoint(self, dirpath: str) -> bool:
        """Return False: nothing was saved."""
        return False

    def save_to_dir(self, dirpath: str, session_str: str) -> None:
        """Save nothing."""


class WorkerFailures(tune.Callback):  # type: ignore[misc]
    """Counts of processes of each place that ended before their worker registered with the keeper.

    Tune counts in its thread, the driver reads in another, and Tune pickles the object: it has no lock.
    """

    def __init__(self) -> None:
        """Start at zero."""
        self._counts: Counter[str] = Counter()
        self._registered: dict[str, str] = {}
        self._oom_killed: deque[tuple[str, str]] = deque()
        self._last = ""

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """Count an ended worker process that Tune is about to replace."""
        place = trial.config["place"]
        with suppress(OSError):
            # Tune appends errors to the file; its other records are written later
            self._last = Path(trial.error_file).read_text(errors="replace").rpartition("Failure # ")[2]
        self._counts[place] += 1
        if match := _OUT_OF_MEMORY.search(self._last):
            self._oom_killed.append((place, f"ran out of memory: {match[1]} had {match[2]}"))

    def oom_killed_workers(self) -> Iterator[tuple[str, str]]:
        """Yield the places whose process ran out of memory since the last call, with a phrase for it."""
        with suppress(IndexError):
            while True:
                yield self._oom_killed.popleft()

    def check(self, workers: Collection[str]) -> None:
        """Reset the counts of places whose worker has registered since.

        Args:
            workers: Workers registered with the keeper.

        Raises:
            LaunchError: If a place failed too often.
        """
        for worker in workers:
            place = worker.partition("/")[0]
            if self._registered.get(place) != worker:
                self._registered[place] = worker
                self._counts[place] = 0
        place, most = max(self._counts.copy().items(), key=lambda item: item[1], default=("", 0))
        if most >= _MOST_FAILURES:
            reason = message_line(self._last, "no message", place=-1)
            raise LaunchError(
                f"cannot start workers: {place} ended {most} times before it began: {reason}. "
                "Every machine of the cluster needs deltaspace, of one version."
            )


def treat_oom_as_actor_error() -> None:
    """Make Tune treat a worker that ran out of memory like one that ended.

    Ray (2.60) reports it with an error that Tune does not handle and that would end all workers.
    """
    original = RayActorManager._actor_task_failed

    def treat(manager: Any, tracked_actor_task: Any, exception: Exception) -> None:  # Ray passes them by name
        if isinstance(exception, OutOfMemoryError):
            exception = RayActorError(error_msg=str(exception))
        original(manager, tracked_actor_task=tracked_actor_task, exception=exception)

    RayActorManager._actor_task_failed = treat
