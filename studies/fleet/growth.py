"""The fleet as Ray Tune sees it: a place for every worker that the cluster can hold, now and later."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from ray import tune
from ray.tune.search import Searcher
from ray.tune.search.search_generator import SearchGenerator

from studies.errors import LaunchError
from studies.fleet.nodes import Nodes
from studies.fleet.places import Share
from studies.fleet.tune_worker import MOVES

_MOST_FAILURES = 5


class Growth:
    """How many workers there are to be: as many as were asked for, else as many as the nodes hold at the moment.

    Attributes:
        share: What each is given.
        searcher: Tells Ray Tune, which asks it again and again.
    """

    def __init__(self, share: Share, workers: int | None) -> None:
        """Begin with no worker."""
        self.share = share
        self._workers = workers
        self._nodes = Nodes()
        self.searcher = _Places(self)

    @property
    def wanted(self) -> int:
        """Workers in all; at least one, so that a cluster that grows by what is asked for has something to go by."""
        return self._workers or max(1, self.share.room(self._nodes.staying))


class _Suggesting(Searcher):  # type: ignore[misc]
    """Gives places to workers until the first worker has nothing left to do."""

    def __init__(self, growth: Growth) -> None:
        super().__init__()
        self._growth = growth
        self._given = self._left = 0
        self.is_over = False

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        if self._given - self._left >= self._growth.wanted:
            return None
        self._given += 1
        return {"place": f"worker-{self._given - 1}"}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self._left += 1
        self.is_over = self.is_over or not (result or {}).get(MOVES)


class _Places(SearchGenerator):  # type: ignore[misc]
    """The same as Ray Tune runs it; nothing of it is kept, for no launch is restored."""

    def __init__(self, growth: Growth) -> None:
        self._suggesting = _Suggesting(growth)
        super().__init__(self._suggesting)

    def is_finished(self) -> bool:
        return self._suggesting.is_over

    def has_checkpoint(self, dirpath: str) -> bool:
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
        self._last = ""

    def on_trial_recover(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
        """A worker's process has ended, and Tune is about to start another."""
        self._last = str(trial.get_error())
        self._counts[trial.config["place"]] += 1

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
            raise LaunchError(
                f"workers must be able to begin; {place} ended {most} times before it did: {_last_line(self._last)}. "
                "Every machine of the cluster needs deltaspace, of one version."
            )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it did not say why"]
    return lines[-1].rstrip(".")
