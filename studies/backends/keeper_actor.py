"""Keeper as a Ray actor, and its client in workers, which survives restarts of the actor."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from studies.backends.placement import Nodes
from studies.errors import FencedError, LaunchError, StudiesError
from studies.runtime.study_plan import StudyPlan

if TYPE_CHECKING:  # workers and the driver have this module too, and need neither a database nor a sampler
    from studies.ledger.ledger import Ledger
    from studies.runtime.keeper import StudyKeeper

PING = "ping"
"""Concurrency group of calls that are answered while the keeper waits for its database."""

FILES = "files"
"""Concurrency group of file transfers for workers without access to the study's folder."""

_AGAIN_SECONDS, _NOTHING_SECONDS = 0.02, 0.5
"""Pauses between proposals ahead of need: after one was made, and after none was needed."""

_PATIENCE_SECONDS = 60.0
_LONGEST_CALL_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0


PingAnswer = tuple[str, dict[str, Any]]
"""Answer of the keeper to a ping.

It holds the resource that the keeper waits for (see `studies.runtime.progress.Progress.waits_for`) and the actors of
the registered workers by name.
"""


class KeeperActor:
    """`StudyKeeper` that Ray restarts when its process dies; it then takes the study over again.

    An error of the takeover is stored and raised by every call, since Ray would hide it in a traceback.
    """

    def __init__(self, plan: StudyPlan, launch_name: str) -> None:
        """Prepare the actor; the study is taken over at the first call."""
        self._plan = plan
        self._launch_name = launch_name
        self._keeper: StudyKeeper | None = None
        self._error: StudiesError | None = None
        self._waits_for = self._stop = ""
        self._actors: dict[str, Any] = {}
        self._nodes = Nodes()
        self._loaded: tuple[str, dict[str, str]] | None = None

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the keeper."""
        if self._keeper is None:
            self._keeper = self._taken_over()
        if self._stop:
            self._keeper.drain(self._stop)
        return getattr(self._keeper, method)(*arguments)

    @ray.method(concurrency_group=PING)  # type: ignore[untyped-decorator]
    def ping(self, stop: str) -> PingAnswer:
        """Answer a ping; dismiss the workers if there is a reason to stop."""
        self._stop = self._stop or stop
        return self._waits_for, dict(self._actors)

    @ray.method(concurrency_group=PING)  # type: ignore[untyped-decorator]
    def register_worker(self, worker: str, actor: Any, node: str) -> None:
        """Register the actor and the node of a worker, so that it can be ended when it is silent."""
        self._nodes.register_worker(worker, node)
        place = worker.partition("/")[0]
        self._actors = {name: one for name, one in self._actors.items() if name.partition("/")[0] != place}
        self._actors[worker] = actor

    @ray.method(concurrency_group=PING)  # type: ignore[untyped-decorator]
    def agree(self, node: str, identity: Mapping[str, str]) -> None:
        """Compare the backbone and data of a node with those of the first node.

        Raises:
            LaunchError: If it differs.
        """
        first, known = self._loaded = self._loaded or (node, dict(identity))
        for name, value in known.items():
            if (other := identity.get(name)) != value:
                raise LaunchError(
                    f"every node must have the same {name}; got {value} on node {first} and {other} on node {node}. "
                    "Share one folder, or one cache by HF_HOME, set before 'ray start', and install the same releases."
                )

    @ray.method(concurrency_group=FILES)  # type: ignore[untyped-decorator]
    def write_file(self, trial: int, attempt: int, name: str, content: bytes) -> str:
        """Write a file of an attempt for a worker without access to the study's folder; return its path."""
        from studies.runtime.artefacts import write_file

        return str(write_file(self._plan.artefacts, trial, attempt, name, content))

    @ray.method(concurrency_group=FILES)  # type: ignore[untyped-decorator]
    def read_file(self, path: str) -> bytes | None:
        """Return a file of the study for such a worker; None if it cannot be read."""
        from studies.runtime.artefacts import read_file

        return read_file(self._plan.artefacts, path)

    def _taken_over(self) -> "StudyKeeper":
        """Return the study's keeper, unless another launch has taken the study over since."""
        from studies.ledger.database import Patience
        from studies.ledger.ledger import Ledger
        from studies.runtime.keeper import StudyKeeper
        from studies.runtime.periodic_thread import PeriodicThread

        if self._error is not None:
            raise self._error
        patience = Patience(
            seconds=self._plan.patience_seconds, tell=self._set_waits_for, is_over=lambda: bool(self._stop)
        )
        try:
            ledger = Ledger.open(self._plan.storage_url, create=False, patience=patience)
            if ray.get_runtime_context().was_current_actor_reconstructed:
                _refuse_stolen_study(ledger, self._plan.study, self._launch_name)
            keeper = StudyKeeper(self._plan, ledger, name=self._launch_name, machines=self._nodes)
            PeriodicThread(lambda: _AGAIN_SECONDS if keeper.prepare() else _NOTHING_SECONDS, keeper.halt).start()
            return keeper
        except StudiesError as error:
            self._error = error
            raise

    def _set_waits_for(self, text: str) -> None:
        self._waits_for = text


def _refuse_stolen_study(ledger: "Ledger", study: str, launch_name: str) -> None:
    """Raise an error if another launch has taken the study over since this launch did.

    Raises:
        FencedError: If another launch has taken it over.
    """
    keepers = ledger.keepers(ledger.study(study).id)
    if launch_name in keepers and keepers[-1] != launch_name:
        raise FencedError(f"study '{study}' was taken over by {keepers[-1]}. This launch must stop.")


def actor_result(asked: Any, seconds: float | None = None) -> Any:
    """Return the answer of an actor, waiting at most so many seconds.

    Raises:
        StudiesError: Error of the actor's method.
    """
    try:
        return ray.get(asked, timeout=seconds)
    except RayTaskError as error:
        if isinstance(error.cause, StudiesError):
            raise error.cause from None
        raise


class KeeperClient:
    """Keeper for workers."""

    def __init__(self, handle: Any) -> None:
        """Use an actor's handle."""
        self._handle = handle

    def register_worker(self, worker: str) -> None:
        """Register the worker of this process without waiting; see `KeeperActor.register_worker`."""
        context = ray.get_runtime_context()
        self._handle.register_worker.remote(worker, context.current_actor, context.get_node_id())

    def agree(self, node: str, identity: Mapping[str, str]) -> None:
        """Send the identity of this node's backbone and data to `KeeperActor.agree`. A difference ends the launch."""
        try:
            self._call(lambda: self._handle.agree.remote(node, dict(identity)))
        except LaunchError as error:
            self.halt(error)
            raise

    def write_file(self, trial: int, attempt: int, name: str, content: bytes) -> str:
        """Forward to `KeeperActor.write_file`."""
        return str(self._call(lambda: self._handle.write_file.remote(trial, attempt, name, content)))

    def read_file(self, path: str) -> bytes | None:
        """Forward to `KeeperActor.read_file`."""
        content: bytes | None = self._call(lambda: self._handle.read_file.remote(path))
        return content

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """Forward to a method of `studies.runtime.keeper.StudyKeeper`, one call at a time."""
        if method.startswith("_"):  # copy and pickle look up names that the keeper does not have
            raise AttributeError(method)
        return lambda *arguments: self._call(lambda: self._handle.call.remote(method, *arguments))

    def _call(self, ask: Callable[[], Any]) -> Any:
        """Call the actor, again and again while it is being restarted.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if it does not answer or come back.
        """
        patience, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return actor_result(ask(), _LONGEST_CALL_SECONDS)
            except GetTimeoutError as error:
                raise LaunchError(
                    f"the keeper did not respond within {_LONGEST_CALL_SECONDS:g} s. Launch again to continue."
                ) from error
            except RayActorError as error:
                if time.monotonic() > patience:
                    raise LaunchError(f"the keeper was lost: {error}. Launch again to continue.") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
