"""A worker as a trial of Ray Tune that lives as long as the launch."""

import threading
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import ray
from ray.tune import Trainable

from studies.backends.backend import RunnerFactory
from studies.backends.keeper_actor import KeeperClient
from studies.backends.resource_probe import differences, hub_settings
from studies.backends.trial_files import CarriedFiles, FilesInFolder, FolderMark, TrialFiles, sees_folder
from studies.backends.worker import PackWorker
from studies.errors import LaunchError, StudiesError
from studies.runtime.messages import crash_reason
from studies.runtime.study_plan import StudyPlan
from trial_runner.errors import RunnerError
from trial_runner.requests import PackRunner, TrainingPlan

_STEP_SECONDS = 5.0
_HEARTBEAT_SECONDS = 1.0
_BEATS_PER_LEASE = 6
_HEARTBEAT_SHARE = 0.02
"""Of its time a worker's heart waits for the keeper at most, so that a busy one hears large fleets less often."""

_BEATS_PER_MEETING = 10


MOVES = "moves"
"""In the last result of a worker that leaves because its node does: its place is given anew, on another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Where a launch is, for its workers.

    Attributes:
        keeper: Name of the keeper's actor.
        namespace: The actor's.
        node: Where the launch and its keeper are, as Ray names it.
        mark: Tells whether another node sees the study's folder; None where there is no other.
        release: Version of deltaspace there.
        settings: How the hub is reached there.
    """

    keeper: str
    namespace: str
    node: str
    mark: FolderMark | None
    release: str = field(default_factory=lambda: version("deltaspace"))
    settings: Mapping[str, str] = field(default_factory=hub_settings)


class PackTrainable(Trainable):  # type: ignore[misc]
    """One `PackWorker`; a step of Tune is a few seconds of its work. Tune restarts it when its process dies.

    The keeper's ledger holds everything, so a checkpoint of Tune holds nothing.
    """

    def setup(  # noqa: PLR0913 - Tune calls it
        self,
        config: dict[str, Any],
        *,
        plan: StudyPlan,
        factory: RunnerFactory,
        slots: int,
        fitting: TrainingPlan | None,
        snapshot_seconds: float,
        threads: int,
        home: Home,
    ) -> None:
        """Join the keeper under a new incarnation of this place, and load what is needed while it may still begin."""
        self._worker: PackWorker | None = None
        self._began_at = time.monotonic()
        self._stuck_seconds, self._lease_seconds = plan.stuck_seconds, plan.lease_seconds
        self._is_leaving = threading.Event()
        self._is_closed = threading.Event()
        self._name = f"{config['place']}/{uuid.uuid4().hex[:8]}"
        self._keeper = KeeperClient(ray.get_actor(home.keeper, home.namespace))
        try:
            self._keeper.meet(self._name)
            if (error := _other_release(home)) is not None:
                self._keeper.halt(error)
                return
            with ThreadPoolExecutor(1) as beside:
                joined = beside.submit(self._keeper.join, self._name)
                joined.add_done_callback(lambda _: threading.Thread(target=self._beat, daemon=True).start())
                runner = factory(threads)
            joined.result()
            self._keeper.agree(_address(), runner.identity)
            self._worker = PackWorker(
                name=self._name,
                keeper=self._keeper,
                runner=runner,
                slots=slots,
                fitting=fitting,
                files=self._files(runner, plan.artefacts, home),
                snapshot_seconds=snapshot_seconds,
                should_leave=self._is_leaving.is_set,
            )
        except RunnerError as error:
            self._halt(LaunchError(f"{error}{_elsewhere(home)}"))
        except StudiesError:
            # the keeper knows, and the launching process hears it from there
            return
        except Exception as error:
            self._crash(error)
            raise

    def step(self) -> dict[str, Any]:
        """Work for a while."""
        is_over = True
        try:
            if self._worker is not None:
                is_over = self._worker.work(_STEP_SECONDS)
        except StudiesError as error:
            self._halt(error)
        except Exception as error:
            self._crash(error)
            raise
        return {"done": is_over, MOVES: is_over and self._must_move()}

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any]:
        """Nothing: the ledger has it."""
        return {}

    def load_checkpoint(self, checkpoint: dict[str, Any] | None) -> None:
        """Nothing: the ledger has it."""

    def cleanup(self) -> None:
        """Stop the heart."""
        self._is_closed.set()

    def _beat(self) -> None:
        """Keep the leases alive during long steps, and hear when it is time to leave.

        Of a worker that hangs nothing is heard, so that it is replaced.
        """
        pause = _HEARTBEAT_SECONDS
        for beat in count():
            if self._is_closed.wait(pause):
                return
            moved_at = self._began_at if self._worker is None else self._worker.moved_at
            if time.monotonic() - moved_at > self._stuck_seconds:
                continue
            try:
                if beat % _BEATS_PER_MEETING == 0:  # the keeper may be another by now
                    self._keeper.meet(self._name)
                began_at = time.monotonic()
                if self._keeper.heartbeat(self._name):
                    self._is_leaving.set()
                waited = (time.monotonic() - began_at) / _HEARTBEAT_SHARE
                pause = max(_HEARTBEAT_SECONDS, min(waited, self._lease_seconds / _BEATS_PER_LEASE))
            except StudiesError:
                self._is_leaving.set()
                return

    def _files(self, runner: PackRunner, folder: Path, home: Home) -> TrialFiles:
        """The study's folder where it is seen from here, else files that go through the keeper."""
        if home.mark is None or _node() == home.node or sees_folder(home.mark):
            return FilesInFolder(runner, folder)
        self._keeper.note(f"node {_address()} does not see {folder}: its files go through the launching machine")
        return CarriedFiles(runner, self._keeper)

    def _must_move(self) -> bool:
        try:
            return bool(self._keeper.must_move(self._name))
        except StudiesError:
            return False

    def _halt(self, error: StudiesError) -> None:
        """End the launch; a keeper that raised the error itself knows it already."""
        with suppress(StudiesError):
            self._keeper.halt(error)

    def _crash(self, error: Exception) -> None:
        """Say why this process is about to be replaced."""
        with suppress(StudiesError):
            self._keeper.crash(self._name, crash_reason(error))


def _other_release(home: Home) -> LaunchError | None:
    """What is wrong with the deltaspace of this node; None if it is that of the launch."""
    here = version("deltaspace")
    if here == home.release:
        return None
    return LaunchError(
        f"every node must have deltaspace {home.release}, as the launch has; {_address()} has {here}. Install it there."
    )


def _elsewhere(home: Home) -> str:
    """Where that was, if it was not on the launching machine, and what is different there."""
    if _node() == home.node:
        return ""
    aside = ", ".join(differences(hub_settings(), home.settings))
    return f" That was on node {_address()}{f', where {aside}' if aside else ''}."


def _node() -> str:
    return str(ray.get_runtime_context().get_node_id())


def _address() -> str:
    return str(ray.util.get_node_ip_address())
