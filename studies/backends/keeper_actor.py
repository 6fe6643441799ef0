"""The keeper in a process of its own, and how workers reach it, also while it is being restarted."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from studies.backends.placement import Nodes
from studies.errors import FencedError, LaunchError, StudiesError
from studies.runtime.study_plan import StudyPlan

if TYPE_CHECKING:  # workers and the driver have this module too, and need neither a database nor a sampler
    from studies.ledger.database import Patience
    from studies.runtime.keeper import StudyKeeper

PULSE = "pulse"
"""Answered beside all other calls, also while the keeper waits for its database."""

FILES = "files"
"""Files of workers that do not see the study's folder are taken and given beside all other calls."""

_AGAIN_SECONDS, _NOTHING_SECONDS = 0.02, 0.5
"""Between two trials that are proposed ahead of need, for calls that wait; and until it is looked again for need."""

_PATIENCE_SECONDS = 60.0
_LONGEST_CALL_SECONDS = 600.0
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0


Pulse = tuple[str, dict[str, Any]]
"""A sign of life of the keeper.

What it waits for, see `studies.runtime.progress.Progress.waits_for`; and the actors of the workers that were met, by
the name of the worker.
"""


class KeeperActor:
    """A `StudyKeeper` that Ray restarts when its process dies; it then takes the study over from its former self.

    An error of the takeover is kept and answers every call: Ray would bury it in a traceback.
    """

    def __init__(self, plan: StudyPlan, launch_name: str) -> None:
        """Be there to answer; the study is taken over at the first call."""
        self._plan = plan
        self._launch_name = launch_name
        self._keeper: StudyKeeper | None = None
        self._error: StudiesError | None = None
        self._waits_for = self._stop = ""
        self._crew: dict[str, Any] = {}
        self._nodes = Nodes()
        self._loaded: tuple[str, dict[str, str]] | None = None

    def call(self, method: str, *arguments: object) -> Any:
        """Call a method of the keeper."""
        if self._keeper is None:
            self._keeper = self._taken_over()
        if self._stop:
            self._keeper.drain(self._stop)
        return getattr(self._keeper, method)(*arguments)

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def pulse(self, stop: str) -> Pulse:
        """Say that it lives, and send the workers away if there is a reason to stop."""
        self._stop = self._stop or stop
        return self._waits_for, dict(self._crew)

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def meet(self, worker: str, actor: Any, node: str) -> None:
        """Know the actor of a worker, so that it can be ended when it falls silent, and the node that it is on."""
        self._nodes.meet(worker, node)
        place = worker.partition("/")[0]
        self._crew = {name: one for name, one in self._crew.items() if name.partition("/")[0] != place}
        self._crew[worker] = actor

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def agree(self, node: str, identity: Mapping[str, str]) -> None:
        """Hear what a node has loaded; the first that tells is what all others must have.

        Raises:
            LaunchError: If it is something else.
        """
        first, known = self._loaded = self._loaded or (node, dict(identity))
        for name, value in known.items():
            if (other := identity.get(name)) != value:
                raise LaunchError(
                    f"every node must have the same {name}; node {first} has {value} and node {node} has {other}. "
                    "Share one folder, or one cache by HF_HOME, set before 'ray start', and install the same releases."
                )

    @ray.method(concurrency_group=FILES)  # type: ignore[untyped-decorator]
    def take_file(self, trial: int, attempt: int, name: str, content: bytes) -> str:
        """Write a file of an attempt for a worker that does not see the study's folder, and return its path."""
        from studies.runtime.artefacts import take_file

        return str(take_file(self._plan.artefacts, trial, attempt, name, content))

    @ray.method(concurrency_group=FILES)  # type: ignore[untyped-decorator]
    def give_file(self, path: str) -> bytes | None:
        """Read a file of the study for such a worker; None if that cannot be."""
        from studies.runtime.artefacts import give_file

        return give_file(self._plan.artefacts, path)

    def _taken_over(self) -> "StudyKeeper":
        """The study's keeper, unless another launch has taken it over since this one began."""
        from studies.ledger.database import Patience
        from studies.runtime.background_thread import Beside
        from studies.runtime.keeper import StudyKeeper

        if self._error is not None:
            raise self._error
        patience = Patience(seconds=self._plan.patience_seconds, tell=self._tell, is_over=lambda: bool(self._stop))
        try:
            if ray.get_runtime_context().was_current_actor_reconstructed:
                _refuse_stolen_study(self._plan, self._launch_name, patience)
            keeper = StudyKeeper(self._plan, name=self._launch_name, patience=patience, machines=self._nodes)
            Beside(lambda: _AGAIN_SECONDS if keeper.prepare() else _NOTHING_SECONDS, keeper.halt).start()
            return keeper
        except StudiesError as error:
            self._error = error
            raise

    def _tell(self, text: str) -> None:
        self._waits_for = text


def _refuse_stolen_study(plan: StudyPlan, launch_name: str, patience: "Patience") -> None:
    """See that nobody has taken the study over since this launch did, if it ever did.

    Raises:
        FencedError: If another launch has.
    """
    from studies.ledger.ledger import Ledger

    with Ledger.open(plan.storage_url, create=False, patience=patience) as ledger:
        keepers = ledger.keepers(ledger.study(plan.study).id)
    if launch_name in keepers and keepers[-1] != launch_name:
        raise FencedError(
            f"study '{plan.study}' was taken over: keeper {len(keepers)} is {keepers[-1]}. This launch must stop."
        )


def answer_of(asked: Any, seconds: float | None = None) -> Any:
    """What an actor answers, within some seconds or whenever.

    Raises:
        StudiesError: What it raised.
    """
    try:
        return ray.get(asked, timeout=seconds)
    except RayTaskError as error:
        if isinstance(error.cause, StudiesError):
            raise error.cause from None
        raise


class KeeperClient:
    """The keeper as workers see it."""

    def __init__(self, handle: Any) -> None:
        """Speak to an actor."""
        self._handle = handle

    def meet(self, worker: str) -> None:
        """Tell it of the worker in this process; see `KeeperActor.meet`. Nobody waits for it."""
        context = ray.get_runtime_context()
        self._handle.meet.remote(worker, context.current_actor, context.get_node_id())

    def agree(self, node: str, identity: Mapping[str, str]) -> None:
        """Tell what was loaded here; see `KeeperActor.agree`. What is wrong with it ends the launch."""
        try:
            self._asked(lambda: self._handle.agree.remote(node, dict(identity)))
        except LaunchError as error:
            self.halt(error)
            raise

    def take_file(self, trial: int, attempt: int, name: str, content: bytes) -> str:
        """See `KeeperActor.take_file`."""
        return str(self._asked(lambda: self._handle.take_file.remote(trial, attempt, name, content)))

    def give_file(self, path: str) -> bytes | None:
        """See `KeeperActor.give_file`."""
        content: bytes | None = self._asked(lambda: self._handle.give_file.remote(path))
        return content

    def __getattr__(self, method: str) -> Callable[..., Any]:
        """A method of the `studies.runtime.keeper.StudyKeeper`, which serves one call at a time."""
        if method.startswith("_"):  # what copies and pickles asks for is not of the keeper
            raise AttributeError(method)
        return lambda *arguments: self._asked(lambda: self._handle.call.remote(method, *arguments))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """Ask, and ask again while the actor is being restarted.

        Raises:
            StudiesError: What the keeper raised; or `LaunchError` if it does not answer or come back.
        """
        patience, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return answer_of(ask(), _LONGEST_CALL_SECONDS)
            except GetTimeoutError as error:
                raise LaunchError("the keeper must answer; it was silent for too long.") from error
            except RayActorError as error:
                if time.monotonic() > patience:
                    raise LaunchError(f"the keeper must answer; it was lost: {error}") from error
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
