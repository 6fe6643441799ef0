"""Worker as a trial of Ray Tune that lives as long as the launch."""

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
from studies.backends.resource_probe import hub_settings, setting_differences
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
"""Largest share of time that heartbeats wait for the keeper, so that large fleets send fewer of them."""

_BEATS_PER_MEETING = 10


MOVES = "moves"
"""Key in the last result of a worker that leaves because its node does; its place moves to another node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """Launching machine for its workers.

    Attributes:
        keeper: Name of the keeper's actor.
        namespace: Namespace of the actor.
        node: Ray's identifier of the launching node.
        mark: File by which other nodes recognize the study's folder; None without other nodes.
        release: Release of deltaspace there.
        settings: Settings of the hub there.
    """

    keeper: str
    namespace: str
    node: str
    mark: FolderMark | None
    release: str = field(default_factory=lambda: version("deltaspace"))
    settings: Mapping[str, str] = field(default_factory=hub_settings)


@dataclass(slots=True, kw_only=True, eq=False)
class Heartbeats:
    """Heartbeats of a worker, which renew its leases during long steps and receive the request to leave.

    A stuck worker sends none, so that it is replaced.

    Attributes:
        name: Name of the worker.
        keeper: Keeper that receives them.
        stuck_seconds: Seconds without progress after which a worker is stuck.
        lease_seconds: Seconds for which a heartbeat renews the leases.
        began_at: Time at which the worker began, on the monotonic clock.
        worker: Worker; None while it loads.
        is_leaving: Whether the worker must leave.
        is_closed: Whether the heartbeats end.
    """

    name: str
    keeper: KeeperClient
    stuck_seconds: float
    lease_seconds: float
    began_at: float = field(default_factory=time.monotonic)
    worker: PackWorker | None = None
    is_leaving: threading.Event = field(default_factory=threading.Event)
    is_closed: threading.Event = field(default_factory=threading.Event)

    def send(self) -> None:
        """Send heartbeats until they are closed, or the keeper refuses one."""
        pause = _HEARTBEAT_SECONDS
        for beat in count():
            if self.is_closed.wait(pause):
                return
            moved_at = self.began_at if self.worker is None else self.worker.moved_at
            if time.monotonic() - moved_at > self.stuck_seconds:
                continue
            try:
                if beat % _BEATS_PER_MEETING == 0:  # the keeper may have been replaced
                    self.keeper.register_worker(self.name)
                began_at = time.monotonic()
                if self.keeper.heartbeat(self.name):
                    self.is_leaving.set()
                waited = (time.monotonic() - began_at) / _HEARTBEAT_SHARE
                pause = max(_HEARTBEAT_SECONDS, min(waited, self.lease_seconds / _BEATS_PER_LEASE))
            except StudiesError:
                self.is_leaving.set()
                return


class PackTrainable(Trainable):  # type: ignore[misc]
    """One `PackWorker`; a step of Tune is a few seconds of its work. Tune restarts it when its process dies.

    The ledger holds everything, so checkpoints of Tune are empty.
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
        """Register a new incarnation of this place, and load backbone and task meanwhile."""
        self._name = f"{config['place']}/{uuid.uuid4().hex[:8]}"
        self._keeper = KeeperClient(ray.get_actor(home.keeper, home.namespace))
        self._heartbeats = beats = Heartbeats(
            name=self._name, keeper=self._keeper, stuck_seconds=plan.stuck_seconds, lease_seconds=plan.lease_seconds
        )
        try:
            self._keeper.register_worker(self._name)
            if (error := other_release(home)) is not None:
                self._keeper.halt(error)
                return
            with ThreadPoolExecutor(1) as executor:
                joined = executor.submit(self._keeper.join, self._name)
                joined.add_done_callback(lambda _: threading.Thread(target=beats.send, daemon=True).start())
                runner = factory(threads)
            joined.result()
            self._keeper.agree(_address(), runner.identity)
            beats.worker = PackWorker(
                name=self._name,
                keeper=self._keeper,
                runner=runner,
                slots=slots,
                fitting=fitting,
                files=self._files(runner, plan.artefacts, home),
                snapshot_seconds=snapshot_seconds,
                should_leave=beats.is_leaving.is_set,
            )
        except RunnerError as error:
            self._halt(LaunchError(f"{error}{node_description(home)}"))
        except StudiesError:
            # the keeper has the error and reports it
            return
        except Exception as error:
            self._crash(error)
            raise

    def step(self) -> dict[str, Any]:
        """Work for a few seconds."""
        is_over = True
        try:
            if (worker := self._heartbeats.worker) is not None:
                is_over = worker.work(_STEP_SECONDS)
        except StudiesError as error:
            self._halt(error)
        except Exception as error:
            self._crash(error)
            raise
        return {"done": is_over, MOVES: is_over and self._must_move()}

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any]:
        """Save nothing: the ledger holds everything."""
        return {}

    def load_checkpoint(self, checkpoint: dict[str, Any] | None) -> None:
        """Load nothing: the ledger holds everything."""

    def cleanup(self) -> None:
        """Stop the heartbeats."""
        self._heartbeats.is_closed.set()

    def _files(self, runner: PackRunner, folder: Path, home: Home) -> TrialFiles:
        """Return the study's folder if it is accessible, else files through the keeper."""
        if home.mark is None or _node() == home.node or sees_folder(home.mark):
            return FilesInFolder(runner, folder)
        self._keeper.note(f"node {_address()} cannot access {folder}: its files go through the launching machine")
        return CarriedFiles(runner, self._keeper)

    def _must_move(self) -> bool:
        """Return whether this worker must move to another node."""
        try:
            return bool(self._keeper.must_move(self._name))
        except StudiesError:
            return False

    def _halt(self, error: StudiesError) -> None:
        """End the launch; the keeper ignores an error of its own."""
        with suppress(StudiesError):
            self._keeper.halt(error)

    def _crash(self, error: Exception) -> None:
        """Report the error because of which this process will be replaced."""
        with suppress(StudiesError):
            self._keeper.crash(self._name, crash_reason(error))


def other_release(home: Home) -> LaunchError | None:
    """Return an error if this node has another release of deltaspace than the launch; else None."""
    here = version("deltaspace")
    if here == home.release:
        return None
    return LaunchError(
        f"every node must have deltaspace {home.release}; got {here} on {_address()}. Install that release there."
    )


def node_description(home: Home) -> str:
    """Return the node and its other settings, if this is not the launching machine."""
    if _node() == home.node:
        return ""
    settings = ", ".join(setting_differences(hub_settings(), home.settings))
    return f" That was on node {_address()}{f', where {settings}' if settings else ''}."


def _node() -> str:
    return str(ray.get_runtime_context().get_node_id())


def _address() -> str:
    return str(ray.util.get_node_ip_address())
